// 16 rows at once in 8 bits, on processors with matrix tiles (Intel's AMX).
//
// Shapes: TALL rows, DEEP outputs of a panel, in groups of LANES; DEPTH inputs of a tile.
#pragma once

#ifdef __AMX_INT8__

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "numbers.h"
#include "product.h"

namespace transduce {

constexpr Index TALL = 16;
constexpr Index DEPTH = 64;

// Whether the processor has tiles and the system lets this process use them, which must be asked for.
inline bool tiles_allowed() {
    static const bool allowed = [] {
        unsigned a, b, c, d;
        const bool there = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1) && (d >> 25 & 1);
        constexpr long request_permission = 0x1023, tile_data = 18;
        return there && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
    }();
    return allowed;
}

// What Intel's manual calls TILECFG: all eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t bytes[16] = {};
    std::uint8_t rows[16] = {};
    TileConfig() {
        for (int tile = 0; tile < 8; ++tile) bytes[tile] = 64, rows[tile] = TALL;
    }
};

// sum_NO = X W^T in 32 bits, (TALL, 4 LANES), of TALL rows of x that lie `room` apart and one panel.
inline void tile_product(const std::uint8_t* x, Index room, const std::int8_t* panel, Index panel_row,
                         std::int32_t* sum) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (Index i = 0; i < room; i += DEPTH) {
        const std::int8_t* from = panel + i / 4 * panel_row;
        _tile_loadd(4, x + i, room);
        _tile_loadd(5, from, panel_row);
        _tile_dpbusd(0, 4, 5);
        _tile_loadd(6, from + 64, panel_row);
        _tile_dpbusd(1, 4, 6);
        _tile_loadd(7, from + 128, panel_row);
        _tile_dpbusd(2, 4, 7);
        _tile_loadd(5, from + 192, panel_row);
        _tile_dpbusd(3, 4, 5);
    }
    constexpr Index row = 4 * LANES * sizeof(std::int32_t);
    _tile_stored(0, sum, row);
    _tile_stored(1, sum + LANES, row);
    _tile_stored(2, sum + 2 * LANES, row);
    _tile_stored(3, sum + 3 * LANES, row);
}

}  // namespace transduce

#endif
