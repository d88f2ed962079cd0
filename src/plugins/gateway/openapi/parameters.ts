/** The parameters of an operation, and the arguments of its tool. */
import { carriesCredential } from '../../../core/host/http/plaintext.ts';
import { isObject, type Json } from '../../../core/kernel/json.ts';
import { type Node, Refusal } from './document.ts';
import type { Parameter, Style } from './model.ts';
import type { SchemaCopier } from './schemas.ts';

const STYLES: Readonly<Record<Parameter['in'], readonly Style[]>> = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
};
const LONGEST_NAME = 64;

/** Headers that the gateway or the protocol sets: no argument of a tool does. The first three are ignored by the standard. */
const OWN_HEADERS =
  /^(?:accept|content-type|authorization|accept-encoding|host|connection|keep-alive|te|trailer|upgrade|expect|via|origin|referer|date|user-agent|set-cookie|cookie2?|forwarded|x-real-ip|x-http-method(?:-override)?|x-method-override|x-original-url|x-rewrite-url)$|^(?:content-|transfer-|proxy-|sec-|x-forwarded-)/i;
/** It ends in `-key`, and is no credential. */
const IDEMPOTENCY_KEY = /^(?:x-)?idempotency-key$/i;
/** An HTTP token (RFC 9110, 5.6.2). */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

export interface Arguments {
  readonly parameters: readonly Parameter[];
  readonly properties: Readonly<Record<string, Json>>;
  /** Names of arguments. */
  readonly required: readonly string[];
}

interface Declared {
  readonly name: string;
  readonly in: Parameter['in'];
  readonly node: Node;
}

/** @throws Refusal a parameter is needed and can not be sent, or two would be one argument */
export function parametersOf(
  root: Node,
  path: string,
  item: Node,
  operation: Node,
  schemas: SchemaCopier,
): Arguments {
  const declared = declaredOf(item, operation).filter((one) => isArgument(root, one));
  const names = new Map<string, Declared>();
  const properties: Record<string, Json> = {};
  const parameters: Parameter[] = [];
  const required: string[] = [];
  for (const one of declared) {
    const sharers = declared.filter(({ name }) => plainName(name) === plainName(one.name));
    const argument = sharers.length > 1 ? `${one.in}_${plainName(one.name)}` : plainName(one.name);
    if (argument === '' || argument === '__proto__' || names.has(argument))
      throw new Refusal(
        `its parameters ${names.get(argument)?.name ?? ''} and ${one.name} can not be told apart`,
      );
    names.set(argument, one);
    const { style, schema } = formOf(one);
    const { explode, description, required: isRequired } = one.node;
    const copied = schemas.copy(schema);
    const isDescribed =
      typeof description === 'string' && isObject(copied) && copied.description === undefined;
    properties[argument] = isDescribed ? { ...copied, description } : copied === true ? {} : copied;
    parameters.push({
      argument,
      name: one.name,
      in: one.in,
      style,
      explode: typeof explode === 'boolean' ? explode : style === 'form',
    });
    if (isRequired === true || one.in === 'path') required.push(argument);
  }
  refuseUnmatched(path, parameters);
  return { parameters, properties, required };
}

const plainName = (name: string): string =>
  name
    .replace(/[^\w.-]+/g, '_')
    .replace(/^_+(?=.)|(?<=.)_+$/g, '')
    .slice(0, LONGEST_NAME);

/** Those of the operation, and those of the path that it does not declare anew. */
function declaredOf(item: Node, operation: Node): readonly Declared[] {
  const found = new Map<string, Declared>();
  for (const list of [item.parameters, operation.parameters]) {
    for (const node of Array.isArray(list) ? list : []) {
      if (!isObject(node) || typeof node.name !== 'string')
        throw new Refusal('one of its parameters is not valid');
      const { name, in: place } = node;
      if (place === 'cookie') {
        if (node.required === true)
          throw new Refusal(`it needs the cookie ${name}, and cookies are not supported`);
        continue;
      }
      if (place !== 'path' && place !== 'query' && place !== 'header')
        throw new Refusal(`its parameter ${name} has no valid place`);
      found.set(`${place} ${name}`, { name, in: place, node });
    }
  }
  return [...found.values()];
}

/** A credential is the gateway's to send, and is no argument. */
function isArgument(root: Node, { name, in: place }: Declared): boolean {
  if (isCredentialOf(root, name, place)) return false;
  if (place !== 'header') return true;
  if (!HEADER_NAME.test(name)) throw new Refusal(`its parameter ${name} is no name of a header`);
  if (OWN_HEADERS.test(name)) return false;
  return IDEMPOTENCY_KEY.test(name) || !carriesCredential({ [name]: '' });
}

function isCredentialOf({ components }: Node, name: string, place: string): boolean {
  const schemes =
    isObject(components) && isObject(components.securitySchemes) ? components.securitySchemes : {};
  return Object.values(schemes).some(
    (scheme) =>
      isObject(scheme) &&
      scheme.in === place &&
      (place === 'header' ? String(scheme.name).toLowerCase() === name.toLowerCase() : scheme.name === name),
  );
}

function formOf({ name, in: place, node }: Declared): { readonly style: Style; readonly schema: unknown } {
  const { content, style, schema } = node;
  if (isObject(content)) {
    const [type = '', media] = Object.entries(content)[0] ?? [];
    if (!/^application\/(?:[\w.-]+\+)?json/i.test(type) || !isObject(media))
      throw new Refusal(`its parameter ${name} is ${type}, and only JSON is supported`);
    return { style: 'json', schema: media.schema ?? {} };
  }
  const [usual = 'simple'] = STYLES[place];
  const chosen = STYLES[place].find((one) => one === style) ?? (style === undefined ? usual : undefined);
  if (chosen === undefined)
    throw new Refusal(`its parameter ${name} has the style ${style}, which is not supported there`);
  return { style: chosen, schema: schema ?? {} };
}

/** Each place in the path has a parameter, and each parameter of the path a place. */
function refuseUnmatched(path: string, parameters: readonly Parameter[]): void {
  const places = [...path.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name);
  const names = parameters.filter((one) => one.in === 'path').map(({ name }) => name);
  const missing =
    places.find((name) => !names.includes(name)) ?? names.find((name) => !places.includes(name));
  if (missing !== undefined) throw new Refusal(`its path and its parameters do not agree on {${missing}}`);
}
