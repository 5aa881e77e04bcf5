// The C interface that adbench/execution/native calls through ctypes. `Unit` is the Function, `Library` the library;
// `every_operator` compiles more than the gradient.
#pragma once

#include "call.hpp"

#define ADBENCH_EXPORT extern "C" __attribute__((visibility("default")))

// axes: count per leaf, negative for an int, a bool or a text. extents: of all leaves in a row.
// variant: which way to call the library, if it has several.
// Returns null after an exception and writes its text to `message`, which holds `room` characters.
ADBENCH_EXPORT adbench::Call* adbench_open(std::size_t count, const int* axes, const std::int64_t* extents, int variant,
                                           char* message, std::size_t room) {
    try {
        std::vector<adbench::Leaf> leaves(count);
        for (adbench::Leaf& leaf : leaves) {
            const int own = *axes++;
            leaf = {nullptr, {extents, extents + std::max(own, 0)}, own >= 0, 1};
            for (const std::int64_t extent : leaf.shape) leaf.size *= static_cast<std::size_t>(extent);
            extents += std::max(own, 0);
        }
        return new adbench::CallOf<Library, Unit, every_operator>(std::move(leaves), variant);
    } catch (const std::exception& error) {
        std::strncpy(message, error.what(), room - 1);
        return nullptr;
    }
}

ADBENCH_EXPORT int adbench_has(const adbench::Call* call, int asked) { return call->has(asked); }

// Sets the addresses that `adbench_run` reads and writes.
ADBENCH_EXPORT void adbench_bind(adbench::Call* call, int asked, const void* const* leaves, const double* const* vector,
                                 double* out) {
    for (adbench::Leaf& leaf : call->leaves) leaf.data = *leaves++;
    call->asked = asked;
    call->vector = vector;
    call->out = out;
}

// The value, or for jvp the product; NaN after an exception, which adbench_error reports.
ADBENCH_EXPORT double adbench_run(adbench::Call* call) {
    try {
        return call->run();
    } catch (const adbench::Unsupported& reason) {
        call->unsupported = true;
        call->error = reason.what();
    } catch (const std::exception& error) {
        call->error = error.what();
    } catch (...) {
        call->error = "it threw something that is not a std::exception";
    }
    if (call->error.empty()) call->error = "an exception without a message";
    return std::numeric_limits<double>::quiet_NaN();
}

// 0: no exception since the last call. 1: an exception, 2: Unsupported; `message` then holds the text.
ADBENCH_EXPORT int adbench_error(adbench::Call* call, char* message, std::size_t room) {
    if (call->error.empty()) return 0;
    std::strncpy(message, call->error.c_str(), room - 1);
    call->error.clear();
    return std::exchange(call->unsupported, false) ? 2 : 1;
}

ADBENCH_EXPORT void adbench_close(adbench::Call* call) { delete call; }
