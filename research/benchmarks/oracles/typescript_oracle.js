// What the TypeScript compiler says is defined and called in the .ts and .js files below a folder:
// `node typescript_oracle.js TYPESCRIPT FOLDER`, paths on the standard input, JSON lines out, as told
// in `research/benchmarks/oracles.py`. Packages of the folder itself are found by the names in their
// package.json; what other packages define is outside.
"use strict";
const fs = require("fs");
const path = require("path");
const ts = require(path.resolve(process.argv[2]));
const root = fs.realpathSync(process.argv[3]);
const paths = fs.readFileSync(0, "utf8").split("\n").filter(Boolean);

// name of a package → its folder
const packages = {};
const looked = new Set();
for (const file of paths) {
  for (let folder = path.dirname(path.join(root, file)); folder.startsWith(root); folder = path.dirname(folder)) {
    if (looked.has(folder)) break;
    looked.add(folder);
    try {
      const name = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8")).name;
      if (name) packages[name] = folder;
    } catch {}
  }
}
const mapped = {};
for (const [name, folder] of Object.entries(packages)) {
  mapped[name] = [path.join(folder, "src", "index"), path.join(folder, "lib", "index"), path.join(folder, "index")];
  mapped[name + "/lib/*"] = [path.join(folder, "src", "*")];
  mapped[name + "/src/*"] = [path.join(folder, "src", "*")];
}
let given = {};
const config = path.join(root, "tsconfig.json");
if (fs.existsSync(config)) given = ts.readConfigFile(config, ts.sys.readFile).config?.compilerOptions ?? {};
for (const [name, to] of Object.entries(given.paths ?? {})) {
  mapped[name] = to.map((one) => path.join(root, one));
}
const options = {
  allowJs: true, checkJs: false, noEmit: true, strict: true, skipLibCheck: true, jsx: ts.JsxEmit.Preserve,
  target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, types: [], maxNodeModuleJsDepth: 0,
  moduleResolution: ts.ModuleResolutionKind.Bundler, experimentalDecorators: true, resolveJsonModule: true,
  baseUrl: root, paths: mapped,
};
const host = ts.createCompilerHost(options);
const read = host.readFile;
// What a package is written in counts, not the types that it publishes.
host.readFile = (name) => {
  const text = read(name);
  return name.endsWith("package.json") && text ? text.replace(/"(types|typings|exports)":/g, '"-":') : text;
};
// What is written in JavaScript counts as well, not the declarations beside it.
const declares = (name) => name.endsWith(".d.ts") && name.startsWith(root) && !name.includes("node_modules");
const exists = host.fileExists;
host.fileExists = (name) => !declares(name) && exists(name);
const program = ts.createProgram(paths.filter((one) => !declares(path.join(root, one))).map((one) => path.join(root, one)), options, host);
const checker = program.getTypeChecker();
const known = new Set(paths);
const rows = [];

const relative = (file) => path.relative(root, file.fileName).split(path.sep).join("/");
const lineOf = (file, at) => file.getLineAndCharacterOfPosition(at).line + 1;
const functions = new Set([
  "FunctionDeclaration", "MethodDeclaration", "MethodSignature", "Constructor", "GetAccessor", "SetAccessor",
].map((kind) => ts.SyntaxKind[kind]));
const classes = new Set([
  "ClassDeclaration", "InterfaceDeclaration", "EnumDeclaration", "TypeAliasDeclaration",
].map((kind) => ts.SyntaxKind[kind]));
const isFunction = (node) => node && (ts.isArrowFunction(node) || ts.isFunctionExpression(node));

// A name that is written: of a.b.c the last; '' for one that is computed.
function nameOf(node) {
  const name = node.name;
  if (!name) return ts.isConstructorDeclaration(node) ? "constructor" : "";
  if (ts.isIdentifier(name) || ts.isPrivateIdentifier(name)) return name.text;
  if (ts.isStringLiteral(name) || ts.isNumericLiteral(name)) return name.text;
  return ts.isComputedPropertyName(name) ? name.getText() : "";
}

// The definition that a node is: its group, name and the node that holds the name.
function definitionOf(node) {
  if (functions.has(node.kind)) return ["function", nameOf(node), node.name ?? node];
  if (classes.has(node.kind)) return ["class", nameOf(node), node.name ?? node];
  const bound = ts.isVariableDeclaration(node) || ts.isPropertyAssignment(node) || ts.isPropertyDeclaration(node);
  if (bound && node.initializer && node.name) {
    if (isFunction(node.initializer)) return ["function", nameOf(node), node.name];
    if (ts.isClassExpression(node.initializer)) return ["class", nameOf(node), node.name];
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) {
    const left = node.left;
    const name = ts.isPropertyAccessExpression(left) ? left.name : ts.isIdentifier(left) ? left : null;
    if (name && isFunction(node.right)) return ["function", name.text, name];
    if (name && ts.isClassExpression(node.right)) return ["class", name.text, name];
  }
  return null;
}

// Owners of a node: definitions, and objects that are bound to a name; "?" for those that are not.
function owners(node) {
  const found = [];
  for (let at = node.parent, below = node; at; below = at, at = at.parent) {
    const one = definitionOf(at);
    if (one) found.unshift(one[1] || "?");
    else if (ts.isObjectLiteralExpression(at) || ts.isTypeLiteralNode(at) || ts.isClassExpression(at)) found.unshift("?");
    else if (ts.isModuleDeclaration(at)) found.unshift(at.name.text);
  }
  return found;
}

function calledName(node) {
  const called = ts.isTaggedTemplateExpression(node) ? node.tag : node.expression;
  if (ts.isIdentifier(called)) return called;
  if (ts.isPropertyAccessExpression(called)) return called.name;
  return null;
}

// [path, line] of what a call means; "" for outside, null for undecided.
function targets(node, name) {
  let symbol = checker.getSymbolAtLocation(name);
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) {
    const meant = checker.getAliasedSymbol(symbol);
    if (!meant.declarations) return [["", 0]]; // a module that is not here
    symbol = meant;
  }
  const declarations = symbol?.declarations ?? [];
  if (!declarations.length) {
    const called = ts.isPropertyAccessExpression(name.parent) ? name.parent.expression : null;
    let first = called;
    while (first && (ts.isPropertyAccessExpression(first) || ts.isCallExpression(first))) first = first.expression;
    const base = first && ts.isIdentifier(first) ? checker.getSymbolAtLocation(first) : null;
    if (base && base.flags & ts.SymbolFlags.Alias && !checker.getAliasedSymbol(base).declarations) return [["", 0]];
    return [[null, 0]];
  }
  const result = [];
  for (let one of declarations) {  // overloads are one definition
    if (ts.isConstructorDeclaration(one)) one = one.parent;
    const file = one.getSourceFile();
    const where = relative(file);
    if (!known.has(where)) { result.push(["", 0]); continue; }
    const held = definitionOf(isFunction(one) || ts.isClassExpression(one) ? one.parent : one);
    if (!held) { result.push([null, 0]); continue; }
    result.push([where, lineOf(file, held[2].getStart(file))]);
  }
  return result;
}

for (const wanted of paths) {
  const file = program.getSourceFile(path.join(root, wanted));
  if (!file || file.parseDiagnostics?.length) { rows.push({ failed: wanted }); continue; }
  const todo = [file];
  while (todo.length) {
    const node = todo.pop();
    const one = definitionOf(node);
    if (one && one[1]) {
      const qualified = [...owners(node), one[1]].join(".");
      rows.push({ definition: [wanted, lineOf(file, one[2].getStart(file)), lineOf(file, node.getEnd() - 1), qualified, one[0]] });
    }
    if (ts.isCallExpression(node) || ts.isNewExpression(node) || ts.isTaggedTemplateExpression(node)) {
      const name = calledName(node);
      if (name) {
        const line = lineOf(file, name.getStart(file));
        for (const target of targets(node, name)) rows.push({ call: [wanted, line, name.text, ...target] });
      }
    }
    ts.forEachChild(node, (child) => { todo.push(child); });
  }
}
process.stdout.write(rows.map((row) => JSON.stringify(row)).join("\n") + "\n");
