/** The little of protobuf that answers need: varints, and fields with a length. */

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

function numberField(number: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.concat([varint(number * 8), varint(value)]);
}

function bytesField(number: number, content: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

function textField(number: number, text: string): Buffer {
  return text === '' ? Buffer.alloc(0) : bytesField(number, Buffer.from(text));
}

/** `ExportPartialSuccess` inside of the response of any signal; both fields have the same numbers in all three. */
export function exportResponse(refused: number, message: string): Buffer {
  const partial = Buffer.concat([numberField(1, refused), textField(2, message)]);
  return partial.length === 0 ? partial : bytesField(1, partial);
}

/** `google.rpc.Status`, with a `RetryInfo` when it is worth trying again. @param retrySeconds whole seconds */
export function rpcStatus(code: number, message: string, retrySeconds?: number): Buffer {
  const parts = [numberField(1, code), textField(2, message)];
  if (retrySeconds !== undefined) {
    const retryInfo = bytesField(1, numberField(1, retrySeconds));
    const any = [textField(1, 'type.googleapis.com/google.rpc.RetryInfo'), bytesField(2, retryInfo)];
    parts.push(bytesField(3, Buffer.concat(any)));
  }
  return Buffer.concat(parts);
}
