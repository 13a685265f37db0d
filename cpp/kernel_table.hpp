// The table of functions that each kernel_*.cpp gives out.
#pragma once

#include "kernel.hpp"

#define RECOMETER_KERNEL(S) {score_items<S>, rank_factors<S>, rank_scores<S>}
#define RECOMETER_INSTRUCTION_SET(name, S, D) {name, RECOMETER_KERNEL(S), RECOMETER_KERNEL(D)}

namespace recometer {
extern const InstructionSet kAvx512, kAvx2, kPlain;
}
