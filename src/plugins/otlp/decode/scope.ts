import { attributes, put } from './attributes.ts';
import { Origin, type Rows } from './rows.ts';
import { BodyInvalid, type Message, message, messages, name, small } from './values.ts';

/** Spans, data points or records of one request: ten times what collectors send at once. */
const MOST_ITEMS = 100_000;

interface Layout {
  /** The request's only field, e.g. `resourceSpans`. */
  readonly resources: string;
  readonly scopes: string;
  readonly items: string;
}

/** Attributes that say how many others the producer dropped; the tables have no column for it. */
export function noteDropped(
  map: Record<string, string>,
  dropped: Readonly<Record<string, unknown>>,
): Record<string, string> {
  for (const [what, count] of Object.entries(dropped)) {
    const number = small(count, `the dropped ${what} count`);
    if (number > 0) put(map, `otel.dropped_${what}_count`, String(number));
  }
  return map;
}

/** Walks a request: resources, their scopes, the scopes' items. What is refused is refused as small as can be. */
export function eachItem(
  request: Message,
  layout: Layout,
  rows: Rows,
  map: (item: Message, origin: Origin) => void,
  sizeOf: (item: unknown) => number = () => 1,
): void {
  const sizeOfAll = (value: unknown, deeper: (item: unknown) => number): number =>
    Array.isArray(value) ? value.reduce<number>((sum, item) => sum + deeper(item), 0) : 0;
  const inScope = (scope: unknown) => sizeOfAll((scope as Message | null)?.[layout.items], sizeOf);
  const inResource = (resource: unknown) => sizeOfAll((resource as Message | null)?.[layout.scopes], inScope);

  if (sizeOfAll(request[layout.resources], inResource) > MOST_ITEMS) {
    throw new BodyInvalid(`it has more than ${MOST_ITEMS} spans, data points or records`);
  }
  for (const group of messages(request[layout.resources], layout.resources)) {
    rows.each(() => {
      const resource = message(group.resource, 'the resource');
      const own = noteDropped(attributes(resource.attributes), {
        attributes: resource.droppedAttributesCount,
      });
      const service = own['service.name'] ?? '';
      const ofResource = {
        ServiceName: name(service, 'service.name'),
        ResourceAttributes: own,
        ResourceSchemaUrl: name(group.schemaUrl, 'the schema URL'),
      };
      rows.from(ofResource.ServiceName);
      for (const part of messages(group[layout.scopes], layout.scopes)) {
        rows.each(() => {
          const scope = message(part.scope, 'the scope');
          const origin = new Origin({
            ...ofResource,
            ScopeName: name(scope.name, 'the name of the scope'),
            ScopeVersion: name(scope.version, 'the version of the scope'),
            ScopeAttributes: attributes(scope.attributes),
            ScopeDroppedAttrCount: small(scope.droppedAttributesCount, 'the dropped attributes count'),
            ScopeSchemaUrl: name(part.schemaUrl, 'the schema URL'),
          });
          for (const item of messages(part[layout.items], layout.items)) map(item, origin);
        }, inScope(part));
      }
    }, inResource(group));
  }
}
