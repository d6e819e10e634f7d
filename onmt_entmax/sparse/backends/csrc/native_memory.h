// Memory for the work on some rows.

#include <stdlib.h>

#include <new>
#include <vector>

namespace {

// Owns what it gives out, and frees it in the end.
struct Memory {
    std::vector<void *> blocks;

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
