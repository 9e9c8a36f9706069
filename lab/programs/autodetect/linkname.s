// A function without a body is allowed only beside a file of assembler.
