// This file is compiled for AVX-512. It must not share code or data with other files (see
// kernel.hpp).
#include "kernel.hpp"
#include "kernel_table.hpp"
#include "simd_avx512.hpp"

namespace recometer {
const InstructionSet kAvx512 = RECOMETER_INSTRUCTION_SET("avx512", Single512, Double512);
}
