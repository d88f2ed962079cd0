/**
 * The forms in which `holdfast log export` writes a part of a log for people to look at. The command line finds this file by
 * its name, and loads what writes a form when it is wanted.
 */
import type { ExportForms } from '../../core/host/plugin/command.ts';

export const exportForms: ExportForms = {
  html: async () => (await import('./export/page.ts')).writePage,
};
