// Memory that a thread needs while it works on its rows. An ordinary header, which native.cpp and
// lstm.cpp include.

#pragma once

#include <stdlib.h>

#include <new>
#include <vector>

namespace {

// Gives out memory, and frees all of it when it is destroyed.
struct Memory {
    std::vector<void *> blocks;

    // Returns memory of a size in bytes, uninitialised; throws std::bad_alloc if there is none.
    void *take(size_t size) {
        blocks.push_back(nullptr);
        void *memory = blocks.back() = malloc(size);
        if (!memory) throw std::bad_alloc();
        return memory;
    }
    ~Memory() {
        for (void *memory : blocks) free(memory);
    }
};

}  // namespace
