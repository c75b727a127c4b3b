# Runs PROGRAM on DATA: what it prints and computes is to be, bit for bit, what Python did, EXPECTED.txt and
# EXPECTED.f32, of which COMPARED lists the ends. The environment is empty: with no PATH and no path to libraries there
# is neither Python nor MLIR. LAUNCHER, if any, starts the program.

set(launcher "")
if(LAUNCHER)
  list(POP_FRONT LAUNCHER tool)
  find_program(found "${tool}" REQUIRED)
  set(launcher "${found}" ${LAUNCHER})
endif()
execute_process(
  COMMAND env -i ${launcher} "${PROGRAM}" "${DATA}" "${OUTPUT}.f32"
  OUTPUT_FILE "${OUTPUT}.txt"
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ends with ${result}")
endif()
foreach(suffix IN LISTS COMPARED)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E compare_files "${EXPECTED}.${suffix}" "${OUTPUT}.${suffix}"
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "C and Python differ: ${OUTPUT}.${suffix}, ${EXPECTED}.${suffix}")
  endif()
endforeach()
file(READ "${OUTPUT}.txt" text)
message(STATUS "the same as Python: ${text}")
