"""What every part of the compiler stands on: checks of arguments, cores, memory, options, stages."""
