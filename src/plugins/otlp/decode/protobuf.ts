import protobuf from 'protobufjs/light.js';
import { MESSAGES } from './descriptor.ts';
import { BodyInvalid, type Message } from './values.ts';

/** Messages in one body: an empty one takes two bytes there and a hundred here. */
const MOST_MESSAGES = 1_000_000;

const root = build();
let decoded = 0;

/** The types, each counting what it decodes. Exported for tests, which encode with them. */
export function build(): protobuf.Root {
  const nested = Object.fromEntries(Object.entries(MESSAGES).map(([name, fields]) => [name, typeOf(fields)]));
  const made = protobuf.Root.fromJSON({ nested });
  for (const name of Object.keys(MESSAGES)) {
    const type = made.lookupType(name).setup();
    const { decode } = type;
    type.decode = (...arguments_) => {
      decoded += 1;
      if (decoded > MOST_MESSAGES) throw new BodyInvalid(`it has more than ${MOST_MESSAGES} messages`);
      return decode.apply(type, arguments_);
    };
  }
  return made;
}

function typeOf(definition: string): protobuf.IType {
  const fields: Record<string, protobuf.IField> = {};
  const oneofs: Record<string, protobuf.IOneOf> = {};
  for (const field of definition.split(' ')) {
    const [name = '', number, type = ''] = field.split(':');
    const mark = /[*?]$/.exec(type)?.[0];
    fields[name] = { id: Number(number), type: mark ? type.slice(0, -1) : type };
    if (mark === '*') fields[name].rule = 'repeated';
    if (mark === '?') {
      fields[name].options = { proto3_optional: true };
      oneofs[`_${name}`] = { oneof: [name] };
    }
  }
  return { fields, oneofs };
}

/**
 * @param type of the request, e.g. `TraceRequest`
 * @throws BodyInvalid it is no such message, or ends too early
 */
export function parseProtobuf(body: Buffer, type: string): Message {
  decoded = 0;
  try {
    return root.lookupType(type).decode(body) as unknown as Message;
  } catch (error) {
    if (error instanceof BodyInvalid) throw error;
    throw new BodyInvalid('it is no OTLP protobuf message, or ends too early');
  }
}
