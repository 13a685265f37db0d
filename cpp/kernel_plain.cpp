// This file is compiled without optional instructions, so it runs on every processor of the target
// architecture.
#include "kernel.hpp"
#include "kernel_table.hpp"
#include "simd_plain.hpp"

namespace recometer {
namespace {
using Single = Plain<float, std::uint32_t>;
using Double = Plain<double, std::uint64_t>;
}  // namespace
const InstructionSet kPlain = RECOMETER_INSTRUCTION_SET("plain", Single, Double);
}  // namespace recometer
