# find_package(MindMLIR): tensor programs as libraries of C.
#
#   find_package(MindMLIR REQUIRED)
#   mind_mlir_add_library(model FILE model.mind BINDINGS n=4)
#   target_link_libraries(program PRIVATE model)
#
# It is found in an active virtual environment with mind_mlir, else with
#   cmake -DMindMLIR_DIR=$(python -m mind_mlir.cmake) ...
#
# Variables:
#   MindMLIR_EXECUTABLE  the compiler, mind-mlir; looked for beside this file's environment, then on PATH
#   MindMLIR_TARGET      the TARGET of libraries that name none; without it this machine, or what is cross compiled for
#   MindMLIR_VERSION     the version of this package

cmake_policy(PUSH)
cmake_policy(VERSION 3.20...3.31)

# In a wheel this file is <environment>/share/cmake/MindMLIR; in a checkout it is <checkout>/cmake.
find_program(
  MindMLIR_EXECUTABLE mind-mlir
  HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin" "${CMAKE_CURRENT_LIST_DIR}/../.venv/bin"
  DOC "The compiler of mind_mlir")
mark_as_advanced(MindMLIR_EXECUTABLE)
set(MindMLIR_TARGET "" CACHE STRING "What mind_mlir compiles for where a library names no TARGET")

if(NOT MindMLIR_EXECUTABLE)
  set(MindMLIR_FOUND FALSE)
  set(MindMLIR_NOT_FOUND_MESSAGE
      "There is no program mind-mlir: activate the environment that it is installed in, or say -DMindMLIR_EXECUTABLE=/path/to/mind-mlir")
else()
  execute_process(
    COMMAND "${MindMLIR_EXECUTABLE}" --version
    RESULT_VARIABLE _MindMLIR_result
    OUTPUT_VARIABLE _MindMLIR_output
    ERROR_VARIABLE _MindMLIR_error)
  if(NOT _MindMLIR_output MATCHES "version ([0-9][0-9A-Za-z.+-]*)")
    set(MindMLIR_FOUND FALSE)
    set(MindMLIR_NOT_FOUND_MESSAGE
        "${MindMLIR_EXECUTABLE} --version ends with ${_MindMLIR_result}:\n${_MindMLIR_output}${_MindMLIR_error}")
  elseif(NOT CMAKE_MATCH_1 STREQUAL MindMLIR_VERSION)
    set(MindMLIR_FOUND FALSE)
    set(MindMLIR_NOT_FOUND_MESSAGE
        "${MindMLIR_EXECUTABLE} is version ${CMAKE_MATCH_1}, these files are of ${MindMLIR_VERSION}: clear MindMLIR_EXECUTABLE, or say which is meant with it")
  else()
    include("${CMAKE_CURRENT_LIST_DIR}/MindMLIRAddLibrary.cmake")
  endif()
endif()
foreach(_MindMLIR_name IN ITEMS result output error name)
  unset(_MindMLIR_${_MindMLIR_name})
endforeach()

cmake_policy(POP)
