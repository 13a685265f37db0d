# Stop the configuration if the compiler fuses multiplications and additions despite the flags. It
# may ignore a flag, or accept the flag and fuse anyway, so inspect the machine code of one line.
function(refuse_contraction)
  set(code "${CMAKE_CURRENT_BINARY_DIR}/contraction")
  file(WRITE "${code}.cpp" "
#ifdef __FAST_MATH__
#error
#endif
double f(double a, double b, double c) { return a * b + c; }
")
  if(RECOMETER_X86)
    list(APPEND ARGN -mfma)
  endif()
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  try_compile(compiled "${code}" SOURCES "${code}.cpp" COMPILE_DEFINITIONS ${ARGN} -fno-lto
    OUTPUT_VARIABLE output COPY_FILE "${code}.a")
  if(compiled)
    file(READ "${code}.a" machine_code HEX)
  endif()
  # Look for vfmadd132sd, vfmadd213sd and vfmadd231sd (x86-64) and fmadd (64-bit Arm).
  if(NOT compiled OR output MATCHES "unknown argument"
      OR machine_code MATCHES "c4e2[0-9a-f][0-9a-f][9ab]9|(00|20)084[01]1f")
    message(FATAL_ERROR "This compiler fuses multiplications and additions, and ${ARGN} does not "
      "prevent this, so scores that should be equal would differ. Use GCC or Clang (on Windows "
      "clang-cl), without -ffast-math.\n${output}")
  endif()
endfunction()
