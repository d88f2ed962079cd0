import { readRuntimeFile } from '../../core/host/runtime/runtime-file.ts';

/**
 * The base that is pushed to: the configured one, else the embedded monitor of the instance on the data folder.
 *
 * @param pid of that instance, where it is known: what a killed one left behind is no address
 */
export function monitorBase(url: string | undefined, dataDir: string, pid?: number): string | undefined {
  if (url !== undefined) return url;
  const file = readRuntimeFile(dataDir);
  return pid === undefined || file?.pid === pid ? file?.surfaces.uptime?.url : undefined;
}
