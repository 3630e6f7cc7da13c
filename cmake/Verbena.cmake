# How every module, test and fuzz target of the project is built.

# Assertions stay on in every kind of build: tests and fuzz targets judge with them, and the product's are cheap.
foreach(kind RELEASE RELWITHDEBINFO MINSIZEREL)
	string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${kind} "${CMAKE_C_FLAGS_${kind}}")
endforeach()

add_library(verbena_flags INTERFACE)
target_include_directories(verbena_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(verbena_flags INTERFACE _GNU_SOURCE VERBENA_VERSION="${PROJECT_VERSION}")
target_compile_options(verbena_flags INTERFACE
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith
	-Wno-unused-parameter -fvisibility=hidden -fno-strict-aliasing -fno-omit-frame-pointer)
if(VERBENA_WERROR)
	target_compile_options(verbena_flags INTERFACE -Werror)
endif()
if(VERBENA_SANITIZE)
	target_compile_options(verbena_flags INTERFACE -fsanitize=address,undefined
		-fno-sanitize-recover=all)
	target_link_options(verbena_flags INTERFACE -fsanitize=address,undefined)
endif()
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fsanitize=thread)
check_c_source_compiles("int main(void) { return 0; }" VERBENA_HAS_TSAN)
unset(CMAKE_REQUIRED_FLAGS)
if(VERBENA_FUZZ)
	target_compile_options(verbena_flags INTERFACE -fsanitize=fuzzer-no-link)
	add_custom_target(fuzz_targets)
endif()
if(VERBENA_COVERAGE)
	target_compile_options(verbena_flags INTERFACE --coverage)
	target_link_options(verbena_flags INTERFACE --coverage)
endif()

# The core is small functions in many files, so what programs load is optimized as a whole when it is linked. Objects
# also hold ordinary code, with which the tests are linked: as many programs optimized as a whole would take long to build.
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT CMAKE_BUILD_TYPE STREQUAL Debug AND NOT VERBENA_SANITIZE AND NOT VERBENA_COVERAGE)
	set(VERBENA_LTO ON)
	target_link_options(verbena_flags INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:VERBENA_WHOLE>>>:-fno-lto>)
endif()

# verbena_both_forms(TARGET): its objects hold ordinary code, and what a target needs that is optimized as a whole.
function(verbena_both_forms target)
	if(VERBENA_LTO)
		target_compile_options(${target} PRIVATE -flto=auto -ffat-lto-objects)
	endif()
endfunction()

# verbena_whole(TARGET): it is optimized as a whole.
function(verbena_whole target)
	if(VERBENA_LTO)
		verbena_both_forms(${target})
		set_target_properties(${target} PROPERTIES VERBENA_WHOLE ON)
		target_link_options(${target} PRIVATE -flto=auto)
	endif()
endfunction()

# Every module's objects end up in one static library for tests and tools, and in the one shared
# object that applications load.
add_library(verbena_static STATIC)
target_link_libraries(verbena_static PUBLIC verbena_flags)

# verbena_module(NAME [STRICT] SOURCES ... [LIBS ...] [TESTS x_test.c ...] [FUZZ x_fuzz.c ...])
#   STRICT adds -Wconversion. A test is one cmocka program named after its file; a fuzz target is
#   one LLVMFuzzerTestOneInput whose corpus lies in corpus/<name>/ beside it.
function(verbena_module name)
	cmake_parse_arguments(M "STRICT" "" "SOURCES;LIBS;TESTS;FUZZ" ${ARGN})
	add_library(mod_${name} OBJECT ${M_SOURCES})
	target_link_libraries(mod_${name} PUBLIC verbena_flags ${M_LIBS})
	verbena_both_forms(mod_${name})
	if(M_STRICT)
		target_compile_options(mod_${name} PRIVATE -Wconversion -Wno-sign-conversion)
	endif()
	target_sources(verbena_static PRIVATE $<TARGET_OBJECTS:mod_${name}>)
	if(M_LIBS)
		target_link_libraries(verbena_static PUBLIC ${M_LIBS})
	endif()
	foreach(t ${M_TESTS})
		verbena_test(${t} unit)
	endforeach()
	foreach(f ${M_FUZZ})
		verbena_fuzz(${f})
	endforeach()
endfunction()

# verbena_test(FILE LABEL [extra sources or libraries ...]): a cmocka program under ctest.
function(verbena_test file label)
	get_filename_component(t ${file} NAME_WE)
	add_executable(${t} ${file} ${ARGN})
	target_include_directories(${t} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
	target_link_libraries(${t} PRIVATE verbena_static PkgConfig::CMOCKA)
	add_test(NAME ${label}/${t} COMMAND ${t})
	set_tests_properties(${label}/${t} PROPERTIES LABELS ${label} TIMEOUT 1200)
endfunction()

# verbena_race_test(FILE SOURCE ...): where the other sanitizers are, the same unit test once more with the sources that it is about,
# all built for ThreadSanitizer, as test unit/NAME_races. One program cannot have two sanitizers.
function(verbena_race_test file)
	if(NOT VERBENA_SANITIZE OR VERBENA_FUZZ OR NOT VERBENA_HAS_TSAN)
		return()
	endif()
	get_filename_component(t ${file} NAME_WE)
	string(REGEX REPLACE "_test$" "_races" t ${t})
	add_executable(${t} ${file} ${ARGN})
	target_include_directories(${t} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
	target_compile_definitions(${t} PRIVATE _GNU_SOURCE)
	# A fence is more than it knows; the order of a ring's accesses is seen without.
	target_compile_options(${t} PRIVATE -fsanitize=thread -fno-strict-aliasing $<$<C_COMPILER_ID:GNU>:-Wno-tsan>)
	target_link_options(${t} PRIVATE -fsanitize=thread)
	target_link_libraries(${t} PRIVATE PkgConfig::CMOCKA Threads::Threads)
	add_test(NAME unit/${t} COMMAND ${t})
	set_tests_properties(unit/${t} PROPERTIES LABELS unit TIMEOUT 1200)
endfunction()

# verbena_fuzz(FILE [OPTION ...]): with VERBENA_FUZZ a libFuzzer program, otherwise a program that replays
# the corpus plus a fixed number of seeded random inputs, run under ctest; the options are its own.
function(verbena_fuzz file)
	get_filename_component(f ${file} NAME_WE)
	if(VERBENA_FUZZ)
		add_executable(${f} ${file})
		set_target_properties(${f} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
		target_link_options(${f} PRIVATE -fsanitize=fuzzer)
		add_dependencies(fuzz_targets ${f})
	else()
		add_executable(${f} ${file} ${PROJECT_SOURCE_DIR}/tests/support/fuzz_replay.c)
		add_test(NAME corpus/${f}
			COMMAND ${f} ${ARGN} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${f})
		set_tests_properties(corpus/${f} PROPERTIES LABELS corpus TIMEOUT 1200)
	endif()
	target_include_directories(${f} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
	target_link_libraries(${f} PRIVATE verbena_static)
endfunction()

# verbena_many(LABEL TEST...): what a test does many times when its argument is "many", for a figure or to try every order of
# events, as LABEL/TEST_many. The sanitizers find nothing in it that they do not find in few, so `make test` runs it in the
# release build alone.
function(verbena_many label)
	foreach(t ${ARGN})
		add_test(NAME ${label}/${t}_many COMMAND ${t} many)
		set_tests_properties(${label}/${t}_many PROPERTIES LABELS "${label};$<IF:$<BOOL:${VERBENA_SANITIZE}>,all,many>"
			TIMEOUT 1200)
	endforeach()
endfunction()

# What is installed, and all that a package has to build: the program and the libraries it shows to the loader.
add_custom_target(product)

# verbena_preloaded(TARGET): a library that `verbena run` puts before the system's. It lies in a folder of its own, so
# that no loader finds it by itself.
function(verbena_preloaded target)
	add_dependencies(product ${target})
	set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/verbena)
	install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena NAMELINK_SKIP)
endfunction()
