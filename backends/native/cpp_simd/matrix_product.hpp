// The gradient by hand, as the compiler vectorises it.
#include "../../../cases/matrix_product.hpp"
