import { expect, test } from "bun:test";
import { memorySettings } from "../../src/database/embedded/cluster.ts";

const GIB = 1024 ** 3;

// An eighth, from 128 MB to 1 GB; the half, from 512 MB to 64 GB.
test.each([
  [0.5 * GIB, "128MB", "512MB"],
  [1 * GIB, "128MB", "512MB"],
  [2 * GIB, "256MB", "1024MB"],
  [3.5 * GIB, "448MB", "1792MB"],
  [8 * GIB, "1024MB", "4096MB"],
  [24 * GIB, "1024MB", "12288MB"],
  [512 * GIB, "1024MB", "65536MB"],
])("of %d bytes the server takes its share", (bytes, shared, cache) => {
  expect(memorySettings(bytes)).toEqual({ shared_buffers: shared, effective_cache_size: cache });
});
