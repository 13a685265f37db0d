// This file is compiled for AVX2 and FMA. It must not share code or data with other files (see
// kernel.hpp).
#include "kernel.hpp"
#include "kernel_table.hpp"
#include "simd_avx2.hpp"

namespace recometer {
const InstructionSet kAvx2 = RECOMETER_INSTRUCTION_SET("avx2", Single256, Double256);
}
