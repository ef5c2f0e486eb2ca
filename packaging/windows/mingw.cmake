# CMake toolchain: Windows x86-64 libraries, compiled on Linux by mingw with POSIX threads.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(_triple x86_64-w64-mingw32)
# Debian has two thread models and names both; elsewhere there is this one only.
find_program(MINGW_C NAMES ${_triple}-gcc-posix ${_triple}-gcc REQUIRED)
find_program(MINGW_CXX NAMES ${_triple}-g++-posix ${_triple}-g++ REQUIRED)
set(CMAKE_C_COMPILER ${MINGW_C})
set(CMAKE_CXX_COMPILER ${MINGW_CXX})
set(CMAKE_RC_COMPILER ${_triple}-windres)

set(CMAKE_FIND_ROOT_PATH /usr/${_triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

# On 64-bit Windows the stack is aligned to 16 bytes only, yet GCC stores AVX registers there as if
# it were to 32 (GCC bug 54412), and such programs crash. The assembler writes the moves that take
# any address instead; they are as fast where the address is aligned.
set(_flags "-Wa,-muse-unaligned-vector-move -include ${CMAKE_CURRENT_LIST_DIR}/mingw_fixes.h")

set(_throttling FALSE)
foreach(_header processthreadsapi.h winbase.h)
  foreach(_folder /usr/${_triple}/include /usr/${_triple}/sys-root/mingw/include)
    if(EXISTS "${_folder}/${_header}")
      file(STRINGS "${_folder}/${_header}" _lines REGEX "THREAD_POWER_THROTTLING_CURRENT_VERSION")
      if(_lines)
        set(_throttling TRUE)
      endif()
    endif()
  endforeach()
endforeach()
if(NOT _throttling)
  string(APPEND _flags " -DMOELAUNCHER_NO_THROTTLING")
endif()

set(CMAKE_C_FLAGS_INIT "${_flags}")
set(CMAKE_CXX_FLAGS_INIT "${_flags}")
