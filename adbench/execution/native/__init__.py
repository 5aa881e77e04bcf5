"""A C++ library as a backend: the shared part.

library         the description of a library, the source that joins a case's C++ implementation to it, its `prepare`
build           from source to a shared object, cached by content
shared_object   a shared object in this process, by its C interface
native_call     a prepared operator: inputs as C++ sees them, bound once, reused memory for results

The headers are in `backends/native`; a backend's file has a `CppLibrary` and the facts for lists. This package knows no
library.
"""
