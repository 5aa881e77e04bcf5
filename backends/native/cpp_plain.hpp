// Plain C++: the function on doubles, without derivatives.
#pragma once

template <class F>
struct Library {
    explicit Library(const F&) {}
};
