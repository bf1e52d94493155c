import { expect, test } from "bun:test";
import { machineSettings } from "../../src/database/embedded/cluster.ts";

const GIB = 1024 ** 3;

// A quarter, from 128 MB to 4 GB; the half, from 512 MB to 64 GB.
test.each([
  [0.5 * GIB, "128MB", "512MB"],
  [1 * GIB, "256MB", "512MB"],
  [2 * GIB, "512MB", "1024MB"],
  [3.5 * GIB, "896MB", "1792MB"],
  [8 * GIB, "2048MB", "4096MB"],
  [24 * GIB, "4096MB", "12288MB"],
  [512 * GIB, "4096MB", "65536MB"],
])("of %d bytes of memory the server takes its share", (bytes, shared, cache) => {
  expect(machineSettings(bytes, GIB)).toMatchObject({ shared_buffers: shared, effective_cache_size: cache });
});

// A tenth, from 1 GB to 8 GB.
test.each([
  [0, "1024MB"],
  [5 * GIB, "1024MB"],
  [15 * GIB, "1536MB"],
  [40 * GIB, "4096MB"],
  [4_000 * GIB, "8192MB"],
])("of %d bytes of disk the log takes its share", (bytes, log) => {
  expect(machineSettings(GIB, bytes)).toMatchObject({ max_wal_size: log });
});
