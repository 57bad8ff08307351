#pragma once
// An array lies in registers where each index is known: its loops must be unrolled. Not for the emulated
// device, which compiles in seconds and steps in a debugger.
#if defined(ROOFTILE_EMULATED)
#define ROOFTILE_UNROLL
#define ROOFTILE_UNROLL_BY(n)
#else
#define ROOFTILE_UNROLL _Pragma("unroll")
#define ROOFTILE_UNROLL_BY(n) _Pragma(ROOFTILE_TEXT(unroll n))
#define ROOFTILE_TEXT(text) #text
#endif
