// What CMake compiles the precompiled header of the tests beside.
int main() { return 0; }
