// SPDX-License-Identifier: Apache-2.0
// Makes charts.js and LICENSE of the packages that package-lock.json names. See README.md.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const result = await build({
  entryPoints: ["charts.mjs"],
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "Plot",
  target: "es2022",
  legalComments: "none",
  metafile: true,
  write: false,
});

// "node_modules/d3-array/src/.." is of the package d3-array.
const packageOf = (path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1];
const inputs = Object.entries(Object.values(result.metafile.outputs)[0].inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
const packages = [...new Set(inputs.map(([path]) => packageOf(path)).filter(Boolean))].sort();
const licenses = packages.map((name) => {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  if (!file) throw new Error(`${name} has no license file`);
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
});
const rule = `\n${"-".repeat(80)}\n\n`;
writeFileSync("LICENSE", `charts.js contains code of these packages, under these licenses.\n${rule}${licenses.join(rule)}`);

const version = JSON.parse(readFileSync("node_modules/@observablehq/plot/package.json", "utf8")).version;
const script = result.outputFiles[0].text.trim();
if (/<\/script|<!--/i.test(script)) throw new Error("the script would end the element that contains it");
writeFileSync("charts.js", `/*! Observable Plot ${version} and D3, see LICENSE beside this file in the source */\n${script}\n`);
console.log(`${packages.length} packages, ${script.length} characters`);
