#include "matrix_product.hpp"
