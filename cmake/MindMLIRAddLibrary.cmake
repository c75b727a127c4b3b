# mind_mlir_add_library(<target> FILE <program>
#                       [SHARED | STATIC | OBJECT] [NAME <name>]
#                       [FUNCTIONS <function>...] [BINDINGS <dimension>=<extent>...] [CONSTANTS <input>=<file.npy>...]
#                       [TARGET <target>] [TARGET_CPU <cpu>] [FEATURES <+feature|-feature>...]
#                       [THREADS <n>] [OPT_LEVEL <0..3>] [DEBUG] [OPTIONS <option>...] [DEPENDS <file>...])
#
# Compiles a program to a library with plain C functions, and to the header <name>.h that declares them; whoever links
# the target finds the header. Options mean what those of `mind-mlir compile` of the same name do.
#
#   FILE        the program, of any format; relative to the source directory, else to the binary directory
#   SHARED, STATIC, OBJECT   the kind of library; without one BUILD_SHARED_LIBS chooses, as for add_library. Whoever
#               links an OBJECT library links the object file itself
#   NAME        what the C functions and the header begin with; the target's name unless given
#   FUNCTIONS   the functions to compile; all exported ones unless given
#   BINDINGS    what named dimensions are
#   CONSTANTS   inputs that become part of the library, with the arrays that they hold
#   TARGET, TARGET_CPU, FEATURES   the processor; MindMLIR_TARGET unless given, else this machine's, and when cross
#               compiling that of CMAKE_SYSTEM_PROCESSOR
#   THREADS     how many threads share a loop at most; 1 leaves the pool of threads out of the library
#   DEBUG       line tables, so that debuggers and profilers show lines of the program
#   OPTIONS     other options of `mind-mlir compile`, as they are
#   DEPENDS     other files after whose change the library is made anew
#
# The library is made anew when the program, a constant or the compiler changes. What is wrong with the program is
# shown by the build tool, with its place.
function(mind_mlir_add_library target)
  cmake_parse_arguments(
    PARSE_ARGV 1 arg
    "SHARED;STATIC;OBJECT;DEBUG"
    "FILE;NAME;TARGET;TARGET_CPU;THREADS;OPT_LEVEL"
    "FUNCTIONS;BINDINGS;CONSTANTS;FEATURES;OPTIONS;DEPENDS")
  _mind_mlir_check_arguments()

  set(name "${target}")
  if(DEFINED arg_NAME)
    set(name "${arg_NAME}")
  endif()
  string(MAKE_C_IDENTIFIER "${name}" name)
  _mind_mlir_path(file "${arg_FILE}")

  set(options --name "${name}")
  foreach(function IN LISTS arg_FUNCTIONS)
    list(APPEND options --func "${function}")
  endforeach()
  foreach(binding IN LISTS arg_BINDINGS)
    list(APPEND options --bind "${binding}")
  endforeach()
  foreach(constant IN LISTS arg_CONSTANTS)
    if(NOT constant MATCHES "^([^=]+)=(.+)$")
      message(FATAL_ERROR "mind_mlir_add_library(${target}): CONSTANTS takes <input>=<file.npy>, not '${constant}'")
    endif()
    set(input "${CMAKE_MATCH_1}")
    _mind_mlir_path(array "${CMAKE_MATCH_2}")
    list(APPEND options --constant "${input}=${array}")
    list(APPEND arg_DEPENDS "${array}")
  endforeach()
  _mind_mlir_processor(processor)
  list(APPEND options ${processor})
  if(DEFINED arg_TARGET_CPU)
    list(APPEND options --target-cpu "${arg_TARGET_CPU}")
  endif()
  if(DEFINED arg_FEATURES)
    list(JOIN arg_FEATURES "," features)
    list(APPEND options "--features=${features}")
  endif()
  if(DEFINED arg_THREADS)
    list(APPEND options --threads "${arg_THREADS}")
  endif()
  if(DEFINED arg_OPT_LEVEL)
    list(APPEND options -O "${arg_OPT_LEVEL}")
  endif()
  if(arg_DEBUG)
    list(APPEND options --debug)
  endif()
  list(APPEND options ${arg_OPTIONS})

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/MindMLIR/${target}")
  set(object "${folder}/${name}.o")
  set(header "${folder}/include/${name}.h")
  set(depfile "${folder}/${name}.d")
  _mind_mlir_tracking(tracking "${depfile}")
  file(MAKE_DIRECTORY "${folder}/include")
  get_filename_component(program "${file}" NAME)
  add_custom_command(
    OUTPUT "${object}" "${header}"
    COMMAND "${MindMLIR_EXECUTABLE}" compile "${file}" --emit=object --output "${object}" --header "${header}"
            --depfile "${depfile}" ${options}
    DEPENDS "${file}" ${arg_DEPENDS} "${MindMLIR_EXECUTABLE}"
    ${tracking}
    COMMENT "Compiling ${program} to ${name}.o and ${name}.h"
    VERBATIM)

  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  if(arg_OBJECT) # of object libraries, CMake hands on only what it has compiled itself: so this is a file to link
    add_library("${target}" INTERFACE "${object}" "${header}")
    target_link_libraries("${target}" INTERFACE "${object}")
    set(scope INTERFACE)
  else()
    set(kind "")
    if(arg_SHARED)
      set(kind SHARED)
    elseif(arg_STATIC)
      set(kind STATIC)
    endif()
    add_library("${target}" ${kind} "${object}" "${header}")
    _mind_mlir_linker_language(language)
    set_target_properties("${target}" PROPERTIES LINKER_LANGUAGE ${language})
    set(scope PRIVATE)
  endif()

  set(include_directory include)
  if(CMAKE_INSTALL_INCLUDEDIR)
    set(include_directory "${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
  set_target_properties("${target}" PROPERTIES PUBLIC_HEADER "${header}")
  target_include_directories(
    "${target}" INTERFACE "$<BUILD_INTERFACE:${folder}/include>" "$<INSTALL_INTERFACE:${include_directory}>")
  # Functions such as tanhf are libm's, and the pool of threads is made of POSIX threads, which older C libraries
  # have in a library of their own. The plain name, not Threads::Threads: whoever installs the target exports no other.
  if(NOT arg_THREADS STREQUAL "1")
    find_package(Threads REQUIRED)
    target_link_libraries("${target}" ${scope} ${CMAKE_THREAD_LIBS_INIT})
    get_target_property(type "${target}" TYPE)
    if(type STREQUAL "SHARED_LIBRARY") # threads wait in its code: dlclose must not take it away
      target_link_options("${target}" PRIVATE LINKER:-z,nodelete)
    endif()
  endif()
  target_link_libraries("${target}" ${scope} m)
endfunction()

# Ends the configuration if what mind_mlir_add_library was given, in arg_*, is not what it takes.
macro(_mind_mlir_check_arguments)
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mind_mlir_add_library(${target}): what is '${arg_UNPARSED_ARGUMENTS}'?")
  endif()
  if(DEFINED arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "mind_mlir_add_library(${target}): nothing follows ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(NOT DEFINED arg_FILE)
    message(FATAL_ERROR "mind_mlir_add_library(${target}): FILE is missing, the program to compile")
  endif()
  if((arg_SHARED AND arg_STATIC) OR (arg_SHARED AND arg_OBJECT) OR (arg_STATIC AND arg_OBJECT))
    message(FATAL_ERROR "mind_mlir_add_library(${target}): give one of SHARED, STATIC and OBJECT")
  endif()
  if(WIN32 OR APPLE)
    message(FATAL_ERROR "mind_mlir_add_library(${target}): libraries are made for Linux, not for ${CMAKE_SYSTEM_NAME}")
  endif()
endmacro()

# Sets `out` to the absolute path of a file that is there, or that the build makes.
function(_mind_mlir_path out path)
  get_filename_component(found "${path}" ABSOLUTE)
  if(NOT EXISTS "${found}")
    get_filename_component(made "${path}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
    get_source_file_property(generated "${made}" GENERATED)
    if(NOT EXISTS "${made}" AND NOT generated)
      message(FATAL_ERROR "mind_mlir_add_library(${target}): there is no file ${found}, and nothing makes ${made}")
    endif()
    set(found "${made}")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Sets `out` to what makes the library depend on all that the compiler reads, its own sources among it. Below folders
# with a space in their names CMake's Makefiles take no dependency file (3.25: "no rule to make compiler_depend.ts").
function(_mind_mlir_tracking out depfile)
  file(RELATIVE_PATH place "${CMAKE_BINARY_DIR}" "${CMAKE_CURRENT_BINARY_DIR}")
  set(${out} DEPFILE "${depfile}" PARENT_SCOPE)
  if(CMAKE_GENERATOR MATCHES "Makefiles" AND place MATCHES " ")
    set(${out} "" PARENT_SCOPE)
  endif()
endfunction()

# Sets `out` to the option that says what processor the code is for, or to nothing.
function(_mind_mlir_processor out)
  set(processor "${arg_TARGET}")
  if(NOT processor)
    set(processor "${MindMLIR_TARGET}")
  endif()
  if(NOT processor AND CMAKE_CROSSCOMPILING)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
      set(processor x86_64-linux)
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
      set(processor aarch64-linux)
    else()
      message(FATAL_ERROR "mind_mlir_add_library(${target}): no code is made for '${CMAKE_SYSTEM_PROCESSOR}', "
                          "only for x86_64 and aarch64; say TARGET if it is one of these")
    endif()
  endif()
  set(${out} "" PARENT_SCOPE)
  if(processor)
    set(${out} --target "${processor}" PARENT_SCOPE)
  endif()
endfunction()

# Sets `out` to the language whose compiler links the library: C where the project has it.
function(_mind_mlir_linker_language out)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  foreach(language IN ITEMS C CXX)
    if(language IN_LIST languages)
      set(${out} ${language} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "mind_mlir_add_library(${target}): the project needs the language C or CXX, to link")
endfunction()
