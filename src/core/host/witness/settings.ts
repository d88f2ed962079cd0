/** How a witness is configured; one of the three. */
export type WitnessSettings =
  | {
      /** Absolute path; on another mount, append-only where the file system can. */
      readonly file: string;
    }
  | {
      /** Absolute path of a folder, which gets a file for each day (UTC). */
      readonly folder: string;
      /** So many days stay in it; 400 unless set. */
      readonly keepDays?: number | undefined;
    }
  | {
      /** `https:`, or on this machine. */
      readonly url: string;
      /** Absolute path of a file of mode 0600 with a bearer token, read at each post. */
      readonly tokenFile?: string | undefined;
    };

/** The file or folder of a witness that can be read from here. */
export function witnessPath(settings: WitnessSettings): string | undefined {
  if ('file' in settings) return settings.file;
  return 'folder' in settings ? settings.folder : undefined;
}
