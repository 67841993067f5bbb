import com.sun.source.tree.*;
import com.sun.source.util.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import javax.lang.model.element.*;
import javax.lang.model.type.TypeKind;
import javax.tools.*;

/**
 * What javac says is defined and called: {@code java JavaOracle.java FOLDER}, paths on the standard
 * input, JSON lines out, as told in {@code research/benchmarks/oracles.py}. Libraries are not there: what is
 * called on an object of a class that javac cannot find is undecided.
 */
public class JavaOracle extends TreePathScanner<Void, Void> {
    static Path root;
    static Trees trees;
    static SourcePositions positions;
    static PrintStream out;
    final Deque<String> owners = new ArrayDeque<>();
    final CompilationUnitTree unit;

    JavaOracle(CompilationUnitTree unit) {
        this.unit = unit;
    }

    public static void main(String[] given) throws Exception {
        root = Path.of(given[0]).toRealPath();
        out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<File> files = new ArrayList<>();
        Scanner input = new Scanner(System.in, StandardCharsets.UTF_8);
        while (input.hasNextLine()) {
            files.add(root.resolve(input.nextLine()).toFile());
        }
        files.removeIf(one -> one.getName().equals("module-info.java"));
        StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8);
        Set<String> failed = new TreeSet<>();
        DiagnosticListener<JavaFileObject> told = one -> {
            if (one.getCode().startsWith("compiler.err.expected") || one.getCode().startsWith("compiler.err.illegal.start")) {
                failed.add(relative(one.getSource()));
            }
        };
        List<String> options = List.of("-proc:none", "-XDshould-stop.ifError=FLOW", "-nowarn");
        JavacTask task = (JavacTask) compiler.getTask(
                Writer.nullWriter(), manager, told, options, null, manager.getJavaFileObjectsFromFiles(files));
        trees = Trees.instance(task);
        positions = trees.getSourcePositions();
        List<CompilationUnitTree> units = new ArrayList<>();
        task.parse().forEach(units::add);
        try {
            task.analyze();
        } catch (RuntimeException | Error broken) {
            System.err.println("javac stopped: " + broken);
        }
        for (CompilationUnitTree unit : units) {
            new JavaOracle(unit).scan(unit, null);
        }
        failed.forEach(one -> out.println("{\"failed\": \"" + one + "\"}"));
        out.flush();
        System.exit(0);
    }

    static String relative(FileObject file) {
        return root.relativize(Path.of(file.toUri())).toString().replace(File.separatorChar, '/');
    }

    /** The line on which `name` is declared by `node`: behind modifiers and the type. */
    static long lineOf(CompilationUnitTree file, Tree node, String name) {
        Tree before = node instanceof ClassTree ? ((ClassTree) node).getModifiers() : ((MethodTree) node).getModifiers();
        if (node instanceof MethodTree && ((MethodTree) node).getReturnType() != null) {
            before = ((MethodTree) node).getReturnType();
        }
        long at = Math.max(positions.getEndPosition(file, before), positions.getStartPosition(file, node));
        try {
            String text = file.getSourceFile().getCharContent(true).toString();
            var found = java.util.regex.Pattern.compile("(?<!\\w)" + java.util.regex.Pattern.quote(name) + "(?!\\w)").matcher(text);
            return file.getLineMap().getLineNumber(found.find((int) at) ? found.start() : at);
        } catch (IOException unread) {
            return file.getLineMap().getLineNumber(at);
        }
    }

    void define(Tree node, String name, String group) {
        List<String> words = new ArrayList<>(owners);
        Collections.reverse(words);
        words.add(name);
        long last = unit.getLineMap().getLineNumber(positions.getEndPosition(unit, node) - 1);
        out.printf("{\"definition\": [\"%s\", %d, %d, \"%s\", \"%s\"]}%n", relative(unit.getSourceFile()),
                lineOf(unit, node, name), last, String.join(".", words), group);
    }

    @Override
    public Void visitClass(ClassTree node, Void nothing) {
        String name = node.getSimpleName().toString();
        if (!name.isEmpty()) {
            define(node, name, "class");
        }
        owners.push(name.isEmpty() ? "?" : name);
        super.visitClass(node, nothing);
        owners.pop();
        return null;
    }

    @Override
    public Void visitMethod(MethodTree node, Void nothing) {
        boolean constructor = node.getName().contentEquals("<init>");
        String name = constructor ? owners.peek() : node.getName().toString();
        Tree around = getCurrentPath().getParentPath().getLeaf();
        boolean made = positions.getEndPosition(unit, node) < 0
                || constructor && positions.getStartPosition(unit, node) == positions.getStartPosition(unit, around);
        if (!made) { // not by the compiler
            define(node, name, "function");
        }
        owners.push(name);
        super.visitMethod(node, nothing);
        owners.pop();
        return null;
    }

    @Override
    public Void visitMethodInvocation(MethodInvocationTree node, Void nothing) {
        ExpressionTree called = node.getMethodSelect();
        boolean member = called instanceof MemberSelectTree;
        String name = member ? ((MemberSelectTree) called).getIdentifier().toString() : called.toString();
        call(name, called, trees.getElement(new TreePath(getCurrentPath(), called)));
        return super.visitMethodInvocation(node, nothing);
    }

    @Override
    public Void visitMemberReference(MemberReferenceTree node, Void nothing) {
        if (node.getMode() == MemberReferenceTree.ReferenceMode.INVOKE) {
            call(node.getName().toString(), node, trees.getElement(getCurrentPath()));
        }
        return super.visitMemberReference(node, nothing);
    }

    @Override
    public Void visitNewClass(NewClassTree node, Void nothing) {
        TreePath path = new TreePath(getCurrentPath(), node.getIdentifier());
        while (path.getLeaf() instanceof ParameterizedTypeTree || path.getLeaf() instanceof AnnotatedTypeTree) {
            Tree one = path.getLeaf();
            path = new TreePath(path, one instanceof AnnotatedTypeTree
                    ? ((AnnotatedTypeTree) one).getUnderlyingType() : ((ParameterizedTypeTree) one).getType());
        }
        String name = path.getLeaf().toString();
        call(name.substring(name.lastIndexOf('.') + 1), path.getLeaf(), trees.getElement(path));
        return super.visitNewClass(node, nothing);
    }

    /** A call of `found` where `called` ends; its overloads are one definition with it, a constructor its class. */
    void call(String name, Tree called, Element found) {
        long end = positions.getEndPosition(unit, called);
        if (end < 0 || name.equals("super") || name.equals("this")) {
            return;
        }
        String place = "{\"call\": [\"" + relative(unit.getSourceFile()) + "\", "
                + unit.getLineMap().getLineNumber(end - name.length()) + ", \"" + name + "\", ";
        boolean known = found instanceof ExecutableElement || found instanceof TypeElement;
        if (!known || found.asType().getKind() == TypeKind.ERROR || found.asType().getKind() == TypeKind.OTHER) {
            out.println(place + "null, 0]}");
            return;
        }
        Element owner = found.getEnclosingElement();
        List<Element> meant = new ArrayList<>(List.of(found.getKind() == ElementKind.CONSTRUCTOR ? owner : found));
        if (found.getKind() == ElementKind.METHOD && trees.getTree(owner) != null) { // that of a function type is none
            meant = new ArrayList<>(owner.getEnclosedElements());
            meant.removeIf(one -> one.getKind() != ElementKind.METHOD || !one.getSimpleName().equals(found.getSimpleName()));
        }
        for (Element one : meant) {
            TreePath where = trees.getPath(one);
            if (where == null) {
                out.println(place + "\"\", 0]}");
                continue;
            }
            CompilationUnitTree file = where.getCompilationUnit();
            long line = lineOf(file, where.getLeaf(), one.getSimpleName().toString());
            out.println(place + "\"" + relative(file.getSourceFile()) + "\", " + line + "]}");
        }
    }
}
