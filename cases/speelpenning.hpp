#include "products.hpp"
