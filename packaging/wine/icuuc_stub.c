/* Stands in for icuuc.dll, a part of Windows since 1903 that Wine 8 does not have.

   Qt6Core.dll asks for these functions to convert text in old encodings. Each answers that it
   can convert nothing, so Qt falls back to its own UTF encodings. For tests under Wine only: on
   a real Windows the system's own library is found, and this one would be in its way. */

enum { UNSUPPORTED = 16 };

#define EXPORT __declspec(dllexport)
#define ANSWERS_NOTHING(name) EXPORT void *name(void) { return 0; }

EXPORT void *ucnv_open(const char *name, int *error)
{
    *error = UNSUPPORTED;
    return 0;
}

EXPORT const char *ucnv_getStandardName(const char *name, const char *standard, int *error)
{
    *error = UNSUPPORTED;
    return 0;
}

ANSWERS_NOTHING(ucnv_countAvailable)
ANSWERS_NOTHING(ucnv_getAvailableName)

/* The rest works on a converter, and there is never one. */
ANSWERS_NOTHING(UCNV_FROM_U_CALLBACK_SUBSTITUTE)
ANSWERS_NOTHING(UCNV_TO_U_CALLBACK_SUBSTITUTE)
ANSWERS_NOTHING(ucnv_cbFromUWriteUChars)
ANSWERS_NOTHING(ucnv_cbToUWriteUChars)
ANSWERS_NOTHING(ucnv_close)
ANSWERS_NOTHING(ucnv_fromUCountPending)
ANSWERS_NOTHING(ucnv_fromUnicode)
ANSWERS_NOTHING(ucnv_getFromUCallBack)
ANSWERS_NOTHING(ucnv_getMaxCharSize)
ANSWERS_NOTHING(ucnv_getName)
ANSWERS_NOTHING(ucnv_getToUCallBack)
ANSWERS_NOTHING(ucnv_reset)
ANSWERS_NOTHING(ucnv_setFromUCallBack)
ANSWERS_NOTHING(ucnv_setToUCallBack)
ANSWERS_NOTHING(ucnv_toUCountPending)
ANSWERS_NOTHING(ucnv_toUnicode)
