// Plain C++: the function on doubles, and no derivative.
#pragma once

template <class F>
struct Library {
    explicit Library(const F&) {}
};
