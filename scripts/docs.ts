// `npm run docs`: writes the generated pages of docs/. Tests fail while one of them is not what this would write.
import { mkdirSync, writeFileSync } from 'node:fs';
import { readPublicInterface } from './api/declarations.ts';
import { apiPages } from './api/pages.ts';
import { deliveredRegistrations, ownDefinitions, referencePages } from './reference.ts';

const root = new URL('../', import.meta.url);
mkdirSync(new URL('docs/reference/api/', root), { recursive: true });
const pages = {
  ...referencePages(await deliveredRegistrations(), await ownDefinitions()),
  ...apiPages(readPublicInterface()),
};
for (const [path, text] of Object.entries(pages)) writeFileSync(new URL(path, root), text);
console.log(`written: ${Object.keys(pages).join(', ')}`);
