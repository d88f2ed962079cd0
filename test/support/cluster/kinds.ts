import * as models from '@kubernetes/client-node';

/** How the API names a kind. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

const row = (apiVersion: string, kind: string, plural: string, namespaced = true): Resource => ({
  apiVersion,
  kind,
  plural,
  namespaced,
});

export const RESOURCES: readonly Resource[] = [
  row('v1', 'Namespace', 'namespaces', false),
  row('v1', 'PersistentVolume', 'persistentvolumes', false),
  row('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  row('v1', 'Pod', 'pods'),
  row('v1', 'Secret', 'secrets'),
  row('v1', 'Service', 'services'),
  row('v1', 'Event', 'events'),
  row('apps/v1', 'Deployment', 'deployments'),
  row('apps/v1', 'DaemonSet', 'daemonsets'),
  row('batch/v1', 'Job', 'jobs'),
  row('batch/v1', 'CronJob', 'cronjobs'),
  row('external-secrets.io/v1', 'ExternalSecret', 'externalsecrets'),
  row('velero.io/v1', 'Backup', 'backups'),
  row('velero.io/v1', 'Restore', 'restores'),
  row('velero.io/v1', 'PodVolumeBackup', 'podvolumebackups'),
  row('velero.io/v2alpha1', 'DataUpload', 'datauploads'),
];

/** `/api`, `/apis` and the lists of resources, as clients read them before anything else. */
export function discovery(path: string): object | undefined {
  const versions = [...new Set(RESOURCES.map(({ apiVersion }) => apiVersion))];
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
  if (path === '/apis') {
    const groups = versions
      .filter((version) => version.includes('/'))
      .map((groupVersion) => {
        const [name, version] = groupVersion.split('/');
        return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
      });
    return { kind: 'APIGroupList', apiVersion: 'v1', groups };
  }
  const groupVersion = path.replace(/^\/apis?\//, '');
  if (!versions.includes(groupVersion)) return undefined;
  const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
  const resources = RESOURCES.filter(({ apiVersion }) => apiVersion === groupVersion).map(
    ({ plural, kind, namespaced }) => ({
      name: plural,
      singularName: kind.toLowerCase(),
      kind,
      namespaced,
      verbs,
    }),
  );
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
}

interface Model {
  getAttributeTypeMap(): { baseName: string; type: string }[];
}

/**
 * What a server that validates strictly would complain of: fields that its models do not have, and values of another
 * type. Kinds of operators have no model here, and pass.
 */
export function complaints(object: Record<string, any>): string[] {
  const version = String(object.apiVersion).split('/').at(-1) ?? '';
  return walk(object, `${version[0]?.toUpperCase()}${version.slice(1)}${object.kind}`, '');
}

function walk(value: unknown, type: string, path: string): string[] {
  const list = /^(?:Array|Set)<(.*)>$/.exec(type)?.[1];
  const map = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (list !== undefined) {
    if (!Array.isArray(value)) return [`${path} must be a list`];
    return value.flatMap((item, index) => walk(item, list, `${path}[${index}]`));
  }
  if (map !== undefined) {
    return Object.entries(value as object).flatMap(([key, item]) => walk(item, map, `${path}.${key}`));
  }
  if (['string', 'number', 'boolean'].includes(type)) {
    return typeof value === type ? [] : [`${path} must be a ${type}`];
  }
  const model = (models as unknown as Record<string, Model | undefined>)[type];
  if (typeof model?.getAttributeTypeMap !== 'function') return [];
  if (typeof value !== 'object' || value === null) return [`${path} must be an object`];
  const fields = new Map(model.getAttributeTypeMap().map((field) => [field.baseName, field.type]));
  return Object.entries(value).flatMap(([key, item]) => {
    const field = fields.get(key);
    const place = path === '' ? key : `${path}.${key}`;
    return field === undefined ? [`unknown field "${place}"`] : walk(item, field, place);
  });
}
