// What go/types says is defined and called in the files below a folder: `go run go_oracle.go FOLDER`,
// paths on the standard input, JSON lines out, as told in `research/benchmarks/oracles.py`. Modules that are not
// in the folder are empty here: what they define is outside, and what comes of it is undecided.
package main

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

type program struct {
	root     string
	modules  map[string]string // path of a module → its folder
	files    map[string][]*ast.File
	names    map[*ast.File]string
	packages map[string]*types.Package
	standard types.Importer
	fset     *token.FileSet
	info     *types.Info
}

// Import gives packages of the folder, the standard library's, and empty ones for all others.
func (p *program) Import(address string) (*types.Package, error) {
	for module, folder := range p.modules {
		if address == module || strings.HasPrefix(address, module+"/") {
			return p.check(path.Join(folder, strings.TrimPrefix(address, module)), address), nil
		}
	}
	if !strings.Contains(strings.SplitN(address, "/", 2)[0], ".") && address != "C" {
		if found, err := p.standard.Import(address); err == nil {
			return found, nil
		}
	}
	name := path.Base(address)
	if regexp.MustCompile(`^v\d+$`).MatchString(name) {
		name = path.Base(path.Dir(address))
	}
	empty := types.NewPackage(address, strings.TrimPrefix(name, "go-"))
	empty.MarkComplete()
	return empty, nil
}

// check reads the package of a folder, once; its tests are a package of their own.
func (p *program) check(folder, address string) *types.Package {
	folder = path.Clean(folder)
	if known, ok := p.packages[folder]; ok {
		return known
	}
	p.packages[folder] = types.NewPackage(address, path.Base(address))
	var plain []*ast.File
	for _, file := range p.files[folder] {
		if !strings.HasSuffix(p.names[file], "_test.go") && p.built(file) {
			plain = append(plain, file)
		}
	}
	config := types.Config{Importer: p, Error: func(error) {}, FakeImportC: true}
	found, _ := config.Check(address, p.fset, plain, p.info)
	p.packages[folder] = found
	return found
}

func (p *program) built(file *ast.File) bool {
	name := filepath.Join(p.root, p.names[file])
	match, err := build.Default.MatchFile(filepath.Dir(name), filepath.Base(name))
	return err == nil && match
}

func (p *program) place(at token.Pos) (string, int) {
	position := p.fset.Position(at)
	name, err := filepath.Rel(p.root, position.Filename)
	if err != nil || strings.HasPrefix(name, "..") {
		return "", 0
	}
	return filepath.ToSlash(name), position.Line
}

func main() {
	root, _ := filepath.EvalSymlinks(os.Args[1])
	p := &program{
		root: root, modules: map[string]string{}, files: map[string][]*ast.File{},
		names: map[*ast.File]string{}, packages: map[string]*types.Package{}, fset: token.NewFileSet(),
		info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}},
	}
	build.Default.CgoEnabled = false
	p.standard = importer.ForCompiler(p.fset, "source", nil)
	out := json.NewEncoder(os.Stdout)
	input := bufio.NewScanner(os.Stdin)
	var order []*ast.File
	for input.Scan() {
		name := input.Text()
		folder := path.Dir(name)
		for at := folder; ; at = path.Dir(at) {
			text, err := os.ReadFile(filepath.Join(root, at, "go.mod"))
			if found := regexp.MustCompile(`(?m)^module\s+(\S+)`).FindSubmatch(text); err == nil && found != nil {
				p.modules[string(found[1])] = at
			}
			if at == "." {
				break
			}
		}
		file, err := parser.ParseFile(p.fset, filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			out.Encode(map[string]string{"failed": name})
			continue
		}
		p.files[folder] = append(p.files[folder], file)
		p.names[file] = name
		order = append(order, file)
	}
	for folder := range p.files {
		address := folder
		for module, at := range p.modules {
			if at == "." || strings.HasPrefix(folder+"/", at+"/") {
				address = path.Join(module, strings.TrimPrefix(folder, at))
			}
		}
		p.check(folder, address)
		// Tests see the package's own names: they are checked together with it, once more.
		groups := map[string][]*ast.File{}
		for _, file := range p.files[folder] {
			if p.built(file) {
				groups[file.Name.Name] = append(groups[file.Name.Name], file)
			}
		}
		config := types.Config{Importer: p, Error: func(error) {}, FakeImportC: true}
		for name, files := range groups {
			config.Check(address+" "+name, p.fset, files, p.info)
		}
	}
	for _, file := range order {
		p.definitions(file, out)
		if !p.built(file) {
			out.Encode(map[string]string{"unbuilt": p.names[file]})
		}
		p.calls(file, out) // undecided in files for other systems
	}
}

func (p *program) definitions(file *ast.File, out *json.Encoder) {
	put := func(name *ast.Ident, node ast.Node, qualified, group string) {
		last := p.fset.Position(node.End() - 1).Line
		where, line := p.place(name.Pos())
		out.Encode(map[string][]any{"definition": {where, line, last, qualified, group}})
	}
	var around []string // definitions that are open
	var ends []token.Pos
	below := func(name string) string { return strings.Join(append(append([]string{}, around...), name), ".") }
	ast.Inspect(file, func(node ast.Node) bool {
		if node == nil {
			return true
		}
		for len(ends) > 0 && ends[len(ends)-1] <= node.Pos() {
			around, ends = around[:len(around)-1], ends[:len(ends)-1]
		}
		open := ""
		switch one := node.(type) {
		case *ast.FuncDecl:
			open = one.Name.Name
			if one.Recv != nil && len(one.Recv.List) > 0 {
				open = receiver(one.Recv.List[0].Type) + "." + open
			}
			put(one.Name, one, open, "function")
		case *ast.TypeSpec:
			open = one.Name.Name
			put(one.Name, one, below(open), "class")
		case *ast.InterfaceType:
			for _, method := range one.Methods.List {
				for _, name := range method.Names {
					put(name, method, "?."+name.Name, "function")
				}
			}
		}
		if open != "" {
			around, ends = append(around, open), append(ends, node.End())
		}
		return true
	})
}

func receiver(node ast.Expr) string {
	switch one := node.(type) {
	case *ast.StarExpr:
		return receiver(one.X)
	case *ast.IndexExpr:
		return receiver(one.X)
	case *ast.IndexListExpr:
		return receiver(one.X)
	case *ast.ParenExpr:
		return receiver(one.X)
	case *ast.Ident:
		return one.Name
	}
	return "?"
}

func (p *program) calls(file *ast.File, out *json.Encoder) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		function := ast.Unparen(call.Fun)
		switch one := function.(type) {
		case *ast.IndexExpr:
			function = one.X
		case *ast.IndexListExpr:
			function = one.X
		}
		var name *ast.Ident
		outside := false
		switch one := function.(type) {
		case *ast.Ident:
			name = one
		case *ast.SelectorExpr:
			name = one.Sel
			if base, ok := one.X.(*ast.Ident); ok {
				_, outside = p.info.Uses[base].(*types.PkgName)
			}
		}
		if name == nil {
			return true
		}
		where, line := p.place(name.Pos())
		row := []any{where, line, name.Name, nil, 0}
		object := p.info.Uses[name]
		switch object.(type) {
		case nil:
			if outside { // of a package that is not here
				row[3] = ""
			}
		case *types.Builtin:
			row[3] = ""
		case *types.Func, *types.TypeName:
			row[3], row[4] = "", 0
			if object.Pos().IsValid() {
				row[3], row[4] = p.place(object.Pos())
			}
		}
		out.Encode(map[string][]any{"call": row})
		return true
	})
}
