#include "robot_arm.hpp"
