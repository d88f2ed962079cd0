import { compileSchema } from './checked-schema.ts';
import { parseDocument, Refusal } from './document.ts';
import type { ApiDescription, ApiTool, Selection } from './model.ts';
import { describeApi } from './operations.ts';

/** What the reader is to read. */
export interface DocumentTask {
  readonly text: string;
  readonly selection?: Selection;
}

/** What the reader says at its end. */
export type DocumentResult =
  | { readonly ok: true; readonly api: ApiDescription }
  | { readonly ok: false; readonly reason: string };

/** Reads a document, and makes tools of the operations that are selected. */
export async function resultOf({ text, selection }: DocumentTask): Promise<DocumentResult> {
  try {
    return { ok: true, api: describeApi(await parseDocument(text), selection, refuseInvalidSchemas) };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.message };
    if (error instanceof RangeError) return { ok: false, reason: 'it is nested too deeply' };
    throw error;
  }
}

function refuseInvalidSchemas({ inputSchema, outputSchema }: ApiTool): void {
  for (const schema of [inputSchema, outputSchema]) {
    if (!schema) continue;
    try {
      compileSchema(schema);
    } catch (error) {
      const reason = error instanceof Error ? error.message.slice(0, 300) : '';
      throw new Refusal(`one of its schemas is not valid: ${reason}`);
    }
  }
}
