/* What the Windows compiler's own headers lack or have wrong. Forced into every file. */
#ifndef MOELAUNCHER_MINGW_FIXES_H
#define MOELAUNCHER_MINGW_FIXES_H

/* Windows 10's thread power throttling, which the headers of mingw-w64 10 lack. The values are
   Microsoft's (processthreadsapi.h). */
#ifdef MOELAUNCHER_NO_THROTTLING
#define THREAD_POWER_THROTTLING_CURRENT_VERSION 1
#define THREAD_POWER_THROTTLING_EXECUTION_SPEED 1

typedef struct _THREAD_POWER_THROTTLING_STATE {
    unsigned long Version;
    unsigned long ControlMask;
    unsigned long StateMask;
} THREAD_POWER_THROTTLING_STATE;
#endif

/* GCC 12 gives the AMX instructions their stride as a long, which has 32 bits on Windows; as an
   index it must have 64, or the assembler refuses it. */
#ifdef __AMX_TILE__
#include <immintrin.h>
#undef _tile_loadd_internal
#undef _tile_stream_loadd_internal
#undef _tile_stored_internal
#define _tile_loadd_internal(to, base, stride)             \
    __asm__ volatile("tileloadd\t(%0,%1,1), %%tmm" #to     \
                     :: "r"((const void *)(base)), "r"((long long)(stride)))
#define _tile_stream_loadd_internal(to, base, stride)      \
    __asm__ volatile("tileloaddt1\t(%0,%1,1), %%tmm" #to   \
                     :: "r"((const void *)(base)), "r"((long long)(stride)))
#define _tile_stored_internal(from, base, stride)          \
    __asm__ volatile("tilestored\t%%tmm" #from ", (%0,%1,1)" \
                     :: "r"((void *)(base)), "r"((long long)(stride)) : "memory")
#endif

#endif
