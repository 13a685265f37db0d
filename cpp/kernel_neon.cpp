// This file is compiled for 64-bit Arm processors, all of which have NEON.
#include "kernel.hpp"
#include "kernel_table.hpp"
#include "simd_neon.hpp"

namespace recometer {
const InstructionSet kNeon = RECOMETER_INSTRUCTION_SET("neon", Single128, Double128);
}  // namespace recometer
