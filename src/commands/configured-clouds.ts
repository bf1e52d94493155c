/** The clouds that the settings name. */
import { readFileSync } from "node:fs";
import type { ConfiguredCloud } from "../reconcile/adapter.ts";
import { CloudsFileError, readCloudsFile } from "../reconcile/clouds-file.ts";
import type { Environment, Settings } from "../settings.ts";

/**
 * Reads the clouds file; none is no cloud.
 * @throws {CloudsFileError} that names the file and the entry at fault
 */
export function configuredClouds(settings: Settings, env: Environment): ConfiguredCloud[] {
  const path = settings.sync.cloudsConfig;
  return path === null ? [] : readCloudsFile(path, cloudsFileText(path), env);
}

/** @throws {CloudsFileError} where the file can't be read as text */
export function cloudsFileText(path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new CloudsFileError(`${path}: can't be read: ${why}`);
  }
}
