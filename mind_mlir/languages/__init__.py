"""The languages that programs are written in, each read into modules and printed from them."""
