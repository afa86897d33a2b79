// Packs the extension: one .vsix with the bundles, boughfs, bough.node and the packages that cannot be bundled.
//   node scripts/vsix.mjs
// Used by `npm start` and the end-to-end tests, which install what a person would install. Needs a build (npm run build).
import {
  chmodSync,
  copyFileSync,
  cpSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { unbundled } from './build.mjs';
import { findProgram } from './packages.mjs';
import { root, run } from './processes.mjs';
import { runMain, SetupError } from './report.mjs';
import { selfContained } from './vsix-readme.mjs';

/** What the extension cannot be without, relative to the root, and where it goes. @type {readonly [string, string][]} */
const required = [
  ['dist/extension.cjs', 'dist/extension.cjs'],
  ['dist/helper.js', 'dist/helper.js'],
  ['dist/bough.js', 'dist/bough.js'],
  ['build/release/boughfs', 'dist/boughfs'],
  ['build/release/bough.node', 'dist/bough.node'],
  ['package.json', 'package.json'],
  ['LICENSE', 'LICENSE'],
  ['CHANGELOG.md', 'CHANGELOG.md'],
];
const optional = ['package.nls.json', 'dist/webview.js', 'media', 'examples/agents/repair'];

/**
 * @typedef {object} Manifest the part of package.json that matters here
 * @property {string} name
 * @property {string} displayName
 * @property {string} description
 * @property {string} version
 * @property {string} publisher
 * @property {string} [icon]
 * @property {readonly string[]} categories
 * @property {{vscode: string}} engines
 */

/**
 * Stages build/extension/ and packs it.
 * @returns {Promise<{vsix: string, folder: string}>}
 */
export async function packVsix() {
  const folder = join(root, 'build', 'extension');
  const partial = `${folder}.partial-${process.pid}`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(join(partial, 'dist'), { recursive: true });
  for (const [from, to] of required) {
    if (!existsSync(join(root, from))) {
      throw new SetupError(
        'BOUGH_VSIX_INCOMPLETE',
        'The extension cannot be packed',
        `${from} is missing`,
        'npm run build',
      );
    }
    copyFileSync(join(root, from), join(partial, to));
  }
  writeFileSync(join(partial, 'README.md'), selfContained(readFileSync(join(root, 'README.md'), 'utf8'), root));
  for (const path of optional) {
    if (existsSync(join(root, path)))
      cpSync(join(root, path), join(partial, path), { recursive: true, filter: neededToRun });
  }
  await stripSymbols([join(partial, 'dist', 'boughfs'), join(partial, 'dist', 'bough.node')]);
  for (const path of ['dist/boughfs', 'dist/bough.js']) chmodSync(join(partial, path), 0o755);
  for (const name of unbundled) copyPackage(name, root, partial, new Set());
  const manifest = trimManifest(partial);

  rmSync(folder, { recursive: true, force: true });
  renameSync(partial, folder);
  const vsix = join(root, 'build', `${manifest.name}-${manifest.version}.vsix`);
  await zip(folder, manifest, vsix);
  return { vsix, folder };
}

/** Pictures are in the packed README itself; tests of the example agent are no part of the extension. @param {string} path */
function neededToRun(path) {
  return !path.includes(join('media', 'screenshots')) && !/(\.test\.mjs|tsconfig\.json)$/.test(path);
}

/** @param {readonly string[]} files */
async function stripSymbols(files) {
  if (findProgram('strip') !== undefined) await run('strip', ['--strip-unneeded', ...files]);
}

/** package.json without what only the checkout needs. @param {string} folder @returns {Manifest} */
function trimManifest(folder) {
  const file = join(folder, 'package.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  for (const key of ['scripts', 'devDependencies', 'dependencies', 'private']) delete manifest[key];
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

/**
 * Copies a package and what it needs at run time, each to where its user finds it.
 * @param {string} name
 * @param {string} from folder of the package that needs it
 * @param {string} staged
 * @param {Set<string>} done
 */
function copyPackage(name, from, staged, done) {
  const source = packageFolder(name, from);
  if (source === undefined || done.has(source)) return; // an optional one for another platform is not installed
  done.add(source);
  const target = join(staged, relative(root, source));
  cpSync(source, target, {
    recursive: true,
    // Nested packages are copied by themselves; sources for building are not needed where a prebuilt binary is.
    filter: (path) => {
      const inside = relative(source, path);
      return (
        !/^(node_modules|deps|dependencies|src|prebuilds|build)(\/|$)/.test(inside) &&
        !/\.(map|d\.ts|d\.cts)$/.test(inside)
      );
    },
  });
  const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  for (const dependency of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
    if (dependency !== 'node-addon-api') copyPackage(dependency, source, staged, done); // headers only
  }
}

/** @param {string} name @param {string} from @returns {string | undefined} */
function packageFolder(name, from) {
  const lookup = createRequire(join(from, 'package.json')).resolve.paths(name) ?? [];
  return lookup.map((folder) => join(folder, name)).find((folder) => existsSync(join(folder, 'package.json')));
}

/** @param {string} folder @param {Manifest} manifest @param {string} vsix */
async function zip(folder, manifest, vsix) {
  const { ZipFile } = await import('yazl');
  const archive = new ZipFile();
  const mtime = new Date('2024-01-01T00:00:00Z'); // the same input gives the same file
  archive.addBuffer(Buffer.from(contentTypes(folder)), '[Content_Types].xml', { mtime });
  archive.addBuffer(Buffer.from(vsixManifest(manifest)), 'extension.vsixmanifest', { mtime });
  for (const path of filesBelow(folder)) {
    const mode = statSync(path).mode;
    archive.addFile(path, join('extension', relative(folder, path)), { mtime, mode });
  }
  archive.end();
  mkdirSync(dirname(vsix), { recursive: true });
  await pipeline(archive.outputStream, createWriteStream(vsix));
}

/** @param {string} folder @returns {string[]} */
function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** Open Packaging Conventions: a content type for each extension of a file name. @param {string} folder */
function contentTypes(folder) {
  const known = new Map([
    ['.json', 'application/json'],
    ['.md', 'text/markdown'],
    ['.svg', 'image/svg+xml'],
    ['.png', 'image/png'],
    ['.js', 'application/javascript'],
    ['.cjs', 'application/javascript'],
    ['.mjs', 'application/javascript'],
    ['.vsixmanifest', 'text/xml'],
  ]);
  for (const path of filesBelow(folder)) {
    const extension = /\.[A-Za-z0-9]+$/.exec(path)?.[0];
    if (extension !== undefined && !known.has(extension)) known.set(extension, 'application/octet-stream');
  }
  const defaults = [...known].map(([extension, type]) => `<Default Extension="${extension}" ContentType="${type}"/>`);
  return `<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${defaults.join('')}</Types>\n`;
}

/** @param {string} text */
function escapeXml(text) {
  return text.replace(/[<>&"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** @param {Manifest} manifest */
function vsixManifest(manifest) {
  const property = (/** @type {string} */ id, /** @type {string} */ value) =>
    `<Property Id="Microsoft.VisualStudio.Code.${id}" Value="${escapeXml(value)}"/>`;
  const asset = (/** @type {string} */ type, /** @type {string} */ path) =>
    `<Asset Type="${type}" Path="extension/${escapeXml(path)}" Addressable="true"/>`;
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${escapeXml(manifest.name)}" Version="${escapeXml(manifest.version)}" Publisher="${escapeXml(manifest.publisher)}" TargetPlatform="${process.platform}-${process.arch}"/>
    <DisplayName>${escapeXml(manifest.displayName)}</DisplayName>
    <Description xml:space="preserve">${escapeXml(manifest.description)}</Description>
    <Categories>${escapeXml(manifest.categories.join(','))}</Categories>
    <License>extension/LICENSE</License>
    ${manifest.icon === undefined ? '' : `<Icon>extension/${escapeXml(manifest.icon)}</Icon>`}
    <Properties>${property('Engine', manifest.engines.vscode)}${property('ExtensionKind', 'workspace')}</Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    ${asset('Microsoft.VisualStudio.Code.Manifest', 'package.json')}
    ${asset('Microsoft.VisualStudio.Services.Content.Details', 'README.md')}
    ${asset('Microsoft.VisualStudio.Services.Content.Changelog', 'CHANGELOG.md')}
    ${asset('Microsoft.VisualStudio.Services.Content.License', 'LICENSE')}
  </Assets>
</PackageManifest>
`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await runMain(async () => {
    console.log((await packVsix()).vsix);
  });
}
