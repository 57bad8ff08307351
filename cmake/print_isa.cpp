// Prints the best instruction set of this machine, for ROOFTILE_ISAS=native.
#include <cstdio>

#include "rooftile/backend/cpu/isa.h"

int main() { std::fputs(rooftile::cpu::name(rooftile::cpu::best_isa()), stdout); }
