"""Events that arrive while they are worked on: standard input, from a driver."""
