"""A C++ library as a backend: the part that is the same for all of them.

library   what a library's file says of it, and `prepare`
layout    inputs as C++ sees them, and the text that joins a twin to a library
build     from text to a shared object, cached by content
shared    a shared object in this process, by its C interface
calling   a prepared operator: inputs bound once, results in a row that is used again

The headers are in `backends/native`; a backend's file is a `CppLibrary` and what lists show. Nothing here knows a
library.
"""
