// The gradient by hand, as the compiler vectorises it.
#include "../../../cases/log_determinant.hpp"
