/* Windows 10's thread power throttling, which the headers of mingw-w64 10 lack. The values are
   Microsoft's (processthreadsapi.h). Included only where the headers have none of their own. */
#ifndef MOELAUNCHER_MISSING_IN_MINGW_H
#define MOELAUNCHER_MISSING_IN_MINGW_H

#define THREAD_POWER_THROTTLING_CURRENT_VERSION 1
#define THREAD_POWER_THROTTLING_EXECUTION_SPEED 1

typedef struct _THREAD_POWER_THROTTLING_STATE {
    unsigned long Version;
    unsigned long ControlMask;
    unsigned long StateMask;
} THREAD_POWER_THROTTLING_STATE;

#endif
