// The source that a precompiled header must belong to.
int main() {}
