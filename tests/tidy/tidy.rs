//! Rules about the sources of the workspace: modules import each other in one direction, a name
//! means one type, functions are short, libraries name no options, the paths of the documentation
//! exist, and the program is built of the same features as the workspace.
//!
//! The sources are parsed by `syn`; code that only tests compile is left out.
//!
//! ```sh
//! cargo test --manifest-path tests/tidy/Cargo.toml
//! ```

#![cfg(test)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, Expr, File, Item, Macro, Token, Type, UseTree, Visibility, parse::Parser,
    punctuated::Punctuated, visit::Visit,
};

/// Modules are given by the names from their crate's root, which itself is the empty path.
type Module = Vec<String>;

/// The modules of a crate, each of which is a file.
type Modules = BTreeMap<Module, Source>;

/// The modules that each module uses.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// A file of a crate: its items, and what its paths mean.
struct Source {
    path: PathBuf,
    file: File,
    /// Paths that the module imports, with the names that it gives to them.
    uses: Vec<(String, Module)>,
}

/// In every folder, the files and folders depend on each other in one direction. A folder counts
/// with all that is in it. The module of a folder, its `mod.rs`, and the modules in it may use each
/// other: they are one unit to others.
#[test]
fn modules_of_a_folder_do_not_import_each_other() {
    let all = crates().into_iter().map(|(name, modules)| {
        let imports = imports(&modules);
        assert!(
            imports.values().any(|imports| !imports.is_empty()) || modules.len() < 5,
            "{name} has no imports"
        );
        (
            name,
            siblings(&imports)
                .values()
                .flat_map(cycles)
                .collect::<Vec<_>>(),
        )
    });
    let found: Vec<_> = all.filter(|(_, cycles)| !cycles.is_empty()).collect();
    assert!(found.is_empty(), "modules import each other: {found:#?}");
}

/// Types with a visibility have a name of their own in the whole workspace, so that a search finds
/// one definition. Errors are named alike in every crate, which is the convention.
#[test]
fn no_two_types_share_a_name() {
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (_, modules) in crates() {
        for source in modules.values() {
            for name in types(&source.file.items) {
                places.entry(name).or_default().push(source.path.clone());
            }
        }
    }
    assert!(places.len() > 200, "{} types", places.len());
    places.retain(|name, places| {
        places.len() > 1 && !["Error", "ErrorKind", "Result"].contains(&name.as_str())
    });
    assert!(places.is_empty(), "{places:#?}");
}

/// The size of a function in tokens and branches, because lines measure how it is formatted. An arm
/// of a `match` over many types adds tokens, and is read by itself.
///
/// The limits are at the longest functions of arrow-csv, rust-csv and datafusion-orc, but for the
/// one of arrow-csv that reads all types.
#[test]
fn functions_are_short() {
    const TOKENS: usize = 500;
    const TOKENS_OF_ARM: usize = 25;
    const BRANCHES: usize = 20;
    let mut functions = Functions::default();
    for (_, modules) in crates() {
        for source in modules.values() {
            functions.path.clone_from(&source.path);
            functions.visit_file(&source.file);
        }
    }
    assert!(functions.found.len() > 4000, "{}", functions.found.len());
    let is_long = |size: &FunctionSize| {
        size.tokens > TOKENS + TOKENS_OF_ARM * size.arms || size.branches > BRANCHES
    };
    functions.found.retain(is_long);
    assert!(functions.found.is_empty(), "{:#?}", functions.found);
}

/// Errors have remedies as data: each front end words them in its own syntax, the program in
/// `error/remedy.rs`, SQL in `remedy.rs` of tfarrow-datafusion and in tfarrow-sql, and the Python
/// package in its `remedy.rs`.
#[test]
fn libraries_name_no_option_of_the_program_and_only_two_name_sql() {
    let sql = [
        "SELECT ",
        "SET tfarrow",
        "OPTIONS (",
        "CAST(",
        "arrow_cast",
        "unnest(",
        "flatten(",
    ];
    let sql_libraries = ["tfarrow-datafusion", "tfarrow-sql"];
    // Schemas as SQL, the query of the curves, and the messages of DataFusion.
    let sql_of_report = ["schema/sql.rs", "event_curves.rs", "error_message.rs"];
    let others = [
        "tfarrow-cli",
        "tfarrow-python",
        "tfarrow-testkit",
        "tfarrow-attack",
    ];
    let mut texts = 0;
    for (library, modules) in crates()
        .into_iter()
        .filter(|(name, _)| !others.contains(&name.as_str()))
    {
        let mut found = Literals::default();
        // The program of the cluster is in the crate of its library.
        let is_program = |path: &Path| {
            library == "tfarrow-cluster"
                && path
                    .file_name()
                    .is_some_and(|name| name == "args.rs" || name == "main.rs")
        };
        let sources = modules.values().filter(|source| !is_program(&source.path));
        for source in sources {
            let first = found.0.len();
            found.visit_file(&source.file);
            let names_sql = sql_libraries.contains(&library.as_str())
                || library == "tfarrow-report"
                    && sql_of_report.iter().any(|end| source.path.ends_with(end));
            for text in &found.0[first..] {
                let has_sql = sql.iter().any(|word| text.contains(word));
                assert!(names_sql || !has_sql, "{}: {text:?}", source.path.display());
            }
        }
        texts += found.0.len();
        for text in found.0 {
            let mut dashes = text
                .match_indices("--")
                .map(|(at, dashes)| &text[at + dashes.len()..]);
            let has_option = dashes.any(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
            assert!(
                !has_option && !text.contains("`tfarrow "),
                "{library}: {text:?}"
            );
        }
    }
    assert!(texts > 1000, "{texts} texts");
}

/// Every full path to a source that the documentation names in backticks exists.
#[test]
fn documented_paths_exist() {
    let mut found = 0;
    let pages = files(&root().join("docs"))
        .into_iter()
        .filter(|page| page.extension().is_some_and(|end| end == "md"));
    for page in pages.chain(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name))) {
        let text = fs::read_to_string(&page).unwrap();
        for path in text.split('`').skip(1).step_by(2) {
            let tree = [
                "crates/",
                "tests/",
                "testdata/",
                "docs/",
                "fuzz/",
                "sql/",
                ".ci/",
            ];
            let is_path = tree.iter().any(|root| path.starts_with(root))
                && !path.contains([' ', '*', '<', '{', '?'])
                && !path.contains("CRATE");
            if is_path {
                found += 1;
                assert!(
                    root().join(path).exists(),
                    "{}: {path} does not exist",
                    page.display()
                );
            }
        }
    }
    assert!(found > 30, "{found} paths");
}

/// Otherwise `cargo run` after `cargo install --path`, and the wheel of the Python package after a
/// build of the workspace, compile all crates that depend on the difference once more.
#[test]
fn programs_have_the_features_of_the_workspace() {
    let all = packages(&["--workspace"]);
    for program in ["tfarrow-cli", "tfarrow-python"] {
        let own = packages(&["--package", program]);
        assert!(own.len() > 100, "{own:?}");
        let others: Vec<_> = own.difference(&all).collect();
        assert!(others.is_empty(), "{program} alone has {others:#?}");
    }
}

/// Returns the packages that Cargo compiles for a selection, with their features.
fn packages(selection: &[&str]) -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--edges", "normal,build", "--prefix", "none"]);
    tree.args(["--format", "{p} [{f}]"]).args(selection);
    let output = tree.current_dir(root()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut packages = BTreeSet::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        packages.insert(line.trim_end_matches(" (*)").to_owned());
    }
    packages
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .map(Result::unwrap);
    entries
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.into_path())
        .collect()
}

/// The crates of the workspace by name.
fn crates() -> Vec<(String, Modules)> {
    let folders = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let crates: Vec<_> = folders
        .map(|folder| {
            (
                folder.file_name().unwrap().to_string_lossy().into_owned(),
                modules(&folder.join("src")),
            )
        })
        .collect();
    assert!(crates.len() >= 6, "{} crates", crates.len());
    crates
}

/// The modules of a crate whose sources are in `folder`. A module `tests` and files that only tests
/// declare are left out. So is `main.rs` next to `lib.rs`, which is another crate that uses the
/// library.
fn modules(folder: &Path) -> Modules {
    let mut modules = Modules::new();
    let is_library = folder.join("lib.rs").exists();
    let is_source = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "rs")
            && !(is_library && *path == folder.join("main.rs"))
    };
    for path in files(folder).into_iter().filter(is_source) {
        let name = path.strip_prefix(folder).unwrap().with_extension("");
        let mut module: Module = name
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        if ["mod", "lib", "main"].contains(&module.last().unwrap().as_str()) {
            module.pop();
        }
        let file = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
        modules.insert(
            module,
            Source {
                path,
                file,
                uses: Vec::new(),
            },
        );
    }
    let tests: Vec<Module> = modules
        .iter()
        .flat_map(|(module, source)| {
            let declared = source.file.items.iter().filter_map(|item| match item {
                Item::Mod(child) if is_test(&child.attrs) => {
                    Some([&module[..], &[child.ident.to_string()]].concat())
                }
                _ => None,
            });
            declared.collect::<Vec<_>>()
        })
        .collect();
    modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    let names: BTreeSet<Module> = modules.keys().cloned().collect();
    for (module, source) in &mut modules {
        let items = source.file.items.iter();
        source.uses = items
            .filter_map(|item| match item {
                Item::Use(item) if !is_test(&item.attrs) => Some(leaves(&item.tree)),
                _ => None,
            })
            .flatten()
            .filter_map(|(name, path)| Some((name, from_root(&names, module, &path)?)))
            .collect();
    }
    modules
}

/// The paths of a `use`, each with the name that it binds.
fn leaves(tree: &UseTree) -> Vec<(String, Module)> {
    match tree {
        UseTree::Path(path) => {
            let below = leaves(&path.tree).into_iter();
            below
                .map(|(name, rest)| (name, [vec![path.ident.to_string()], rest].concat()))
                .collect()
        }
        UseTree::Name(name) => vec![(name.ident.to_string(), vec![name.ident.to_string()])],
        UseTree::Rename(rename) => {
            vec![(rename.rename.to_string(), vec![rename.ident.to_string()])]
        }
        UseTree::Glob(_) => vec![("*".to_owned(), vec!["*".to_owned()])],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

/// A path that `module` names, from the root of the crate; `None` if it leads to another crate.
fn from_root(modules: &BTreeSet<Module>, module: &Module, path: &[String]) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => from_root(
            modules,
            &module[..module.len() - 1].to_vec(),
            &[&["self".to_owned()], rest].concat(),
        ),
        _ => {
            let child = [&module[..], std::slice::from_ref(first)].concat();
            modules.contains(&child).then(|| [module, path].concat())
        }
    }
}

/// The module that defines the item of a path from the root: re-exports are followed.
fn definition(modules: &Modules, path: &[String]) -> Module {
    let at = (0..=path.len())
        .rev()
        .find(|end| modules.contains_key(&path[..*end]))
        .unwrap_or_default();
    let module = &path[..at];
    let exported = path.get(at).and_then(|name| {
        modules[module]
            .uses
            .iter()
            .find(|(exported, _)| exported == name)
    });
    match exported {
        Some((_, to)) if to != path => definition(modules, to),
        _ => module.to_vec(),
    }
}

/// The modules whose items each module uses. The root of a crate is not among them: it exports what
/// others define.
fn imports(modules: &Modules) -> Imports {
    let names: BTreeSet<Module> = modules.keys().cloned().collect();
    let named = modules.iter().filter(|(module, _)| !module.is_empty());
    named
        .map(|(module, source)| {
            let mut found = Paths::default();
            found.visit_file(&source.file);
            let resolve =
                |path: &Module| Some(definition(modules, &from_root(&names, module, path)?));
            let exported = found
                .exports
                .iter()
                .filter_map(resolve)
                .filter(|used| !used.starts_with(module));
            let used = found.paths.iter().filter_map(resolve).chain(exported);
            (
                module.clone(),
                used.filter(|used| used != module && !used.is_empty())
                    .collect(),
            )
        })
        .collect()
}

/// The imports between the modules of each folder. An import between modules below two of them
/// counts for these two.
fn siblings(imports: &Imports) -> BTreeMap<Module, Imports> {
    let mut folders: BTreeMap<Module, Imports> = BTreeMap::new();
    let edges = imports
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    for (from, to) in edges {
        let common = from
            .iter()
            .zip(to)
            .take_while(|(from, to)| from == to)
            .count();
        if common < from.len().min(to.len()) {
            let folder = folders.entry(from[..common].to_vec()).or_default();
            folder
                .entry(from[..=common].to_vec())
                .or_default()
                .insert(to[..=common].to_vec());
        }
    }
    folders
}

/// Collects the paths that a file uses, without those of tests.
#[derive(Default)]
struct Paths {
    paths: Vec<Module>,
    /// Paths that a `pub use` exports. Exports of another module count as imports, those of a
    /// module below do not.
    exports: Vec<Module>,
    /// Number of inline modules around the current item.
    depth: usize,
}

impl Paths {
    /// A path as the module of the file would name it; `None` if it does not leave an inline
    /// module.
    fn outside(&self, path: Module) -> Option<Module> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path),
            _ if self.depth == 0 => Some(path),
            "super" if supers >= self.depth => {
                let rest = path[self.depth..].to_vec();
                Some(if supers > self.depth {
                    rest
                } else {
                    [vec!["self".to_owned()], rest].concat()
                })
            }
            _ => None,
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.depth += 1;
        syn::visit::visit_item_mod(self, item);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let paths: Vec<_> = leaves(&item.tree)
            .into_iter()
            .filter_map(|(_, path)| self.outside(path))
            .collect();
        let is_private = matches!(item.vis, Visibility::Inherited);
        if is_private {
            self.paths.extend(paths)
        } else {
            self.exports.extend(paths)
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            let names = path
                .segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect();
            self.paths.extend(self.outside(names));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        arguments(call)
            .iter()
            .for_each(|argument| self.visit_expr(argument));
        syn::visit::visit_macro(self, call);
    }
}

/// The size of the body of a function, with the closures and functions in it.
#[derive(Debug, Default)]
#[expect(
    dead_code,
    reason = "the path and the name are for the message of the test"
)]
struct FunctionSize {
    path: PathBuf,
    name: String,
    tokens: usize,
    /// Number of arms of `match`.
    arms: usize,
    /// Number of `if`, `match`, loops and closures.
    branches: usize,
}

/// Collects the functions of a file, without those of tests.
#[derive(Default)]
struct Functions {
    path: PathBuf,
    found: Vec<FunctionSize>,
}

impl Functions {
    fn add(&mut self, name: &syn::Ident, body: &syn::Block) {
        let mut size = FunctionSize {
            path: self.path.clone(),
            name: name.to_string(),
            tokens: tokens(body.to_token_stream()),
            ..FunctionSize::default()
        };
        size.visit_block(body);
        self.found.push(size);
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig.ident, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            self.add(&function.sig.ident, &function.block);
            syn::visit::visit_impl_item_fn(self, function);
        }
    }
}

impl<'ast> Visit<'ast> for FunctionSize {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        self.branches += usize::from(matches!(
            expr,
            Expr::If(_)
                | Expr::Match(_)
                | Expr::While(_)
                | Expr::ForLoop(_)
                | Expr::Loop(_)
                | Expr::Closure(_)
        ));
        syn::visit::visit_expr(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.arms += 1;
        syn::visit::visit_arm(self, arm);
    }
}

/// The number of tokens, with those in groups.
fn tokens(stream: TokenStream) -> usize {
    let mut count = 0;
    for tree in stream {
        count += match tree {
            TokenTree::Group(group) => 2 + tokens(group.stream()),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => 1,
        };
    }
    count
}

/// Collects the texts of a file, without those of tests.
#[derive(Default)]
struct Literals(Vec<String>);

impl<'ast> Visit<'ast> for Literals {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    /// Documentation is an attribute, with a text.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.0.push(text.value());
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        arguments(call)
            .iter()
            .for_each(|argument| self.visit_expr(argument));
    }
}

/// The arguments of a macro such as `write!`, which are expressions; none for other macros.
fn arguments(call: &Macro) -> Vec<Expr> {
    let arguments = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(call.tokens.clone());
    arguments.into_iter().flatten().collect()
}

/// The attributes of the items that have some.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .meta
                .require_list()
                .is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// The names of types with a visibility: `pub`, or `pub` of some module. An alias that gives a type
/// of the same name its parameters defines no other type.
fn types(items: &[Item]) -> Vec<String> {
    let types = items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some((&item.vis, &item.ident)),
        Item::Enum(item) => Some((&item.vis, &item.ident)),
        Item::Union(item) => Some((&item.vis, &item.ident)),
        Item::Trait(item) => Some((&item.vis, &item.ident)),
        Item::Type(item) if !is_alias_of_its_name(item) => Some((&item.vis, &item.ident)),
        _ => None,
    });
    types
        .filter(|(seen, _)| !matches!(seen, Visibility::Inherited))
        .map(|(_, name)| name.to_string())
        .collect()
}

fn is_alias_of_its_name(alias: &syn::ItemType) -> bool {
    let Type::Path(path) = &*alias.ty else {
        return false;
    };
    path.path
        .segments
        .last()
        .is_some_and(|last| last.ident == alias.ident)
}

/// Groups of modules that lead to each other, each a cycle or several that meet.
fn cycles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<_, _> = imports
        .keys()
        .map(|from| (from, reach(imports, from)))
        .collect();
    let mut cycles: Vec<BTreeSet<String>> = Vec::new();
    for (from, to) in reached.iter().filter(|(from, to)| to.contains(**from)) {
        let cycle = to
            .iter()
            .filter(|to| reached.get(to).is_some_and(|back| back.contains(*from)));
        let cycle: BTreeSet<String> = cycle.map(|module| module.join("::")).collect();
        if !cycles.contains(&cycle) {
            cycles.push(cycle);
        }
    }
    cycles
}

fn reach(imports: &Imports, from: &Module) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for to in imports.get(module).into_iter().flatten() {
            if reached.insert(to.clone()) {
                next.push(to);
            }
        }
    }
    reached
}

#[test]
fn cycles_are_found_through_exports_and_in_macros() {
    let source = |path: &str, text: &str| {
        let path = PathBuf::from(path);
        (path, text.to_owned())
    };
    let folder = tempfile::tempdir().unwrap();
    let sources = [
        source("lib.rs", "mod a; mod b; mod c; mod e; mod f; pub use a::A;"),
        source("main.rs", "mod a;"),
        source(
            "a.rs",
            "pub struct A; fn f() -> String { format!(\"{}\", crate::b::B) }",
        ),
        source(
            "e.rs",
            "mod inline { use super::super::f::F; } pub struct E;",
        ),
        source(
            "f.rs",
            "pub struct F; pub use crate::e::E; #[cfg(test)] const A: crate::A = crate::A;",
        ),
        source(
            "b/mod.rs",
            "mod d; pub(crate) use d::B; #[cfg(test)] mod tests;",
        ),
        source("b/d.rs", "use crate::A; pub struct B;"),
        source("b/tests.rs", "use crate::c::C;"),
        source(
            "c.rs",
            "use crate::b::B; pub struct C; #[cfg(test)] mod tests { use super::C; }",
        ),
    ];
    fs::create_dir(folder.path().join("b")).unwrap();
    sources
        .iter()
        .for_each(|(path, text)| fs::write(folder.path().join(path), text).unwrap());
    let modules = modules(folder.path());
    let imports = imports(&modules);
    assert_eq!(
        cycles(&imports),
        [
            ["a", "b::d"].map(str::to_owned).into(),
            ["e", "f"].map(str::to_owned).into()
        ]
    );
    let folders = siblings(&imports);
    assert_eq!(folders.keys().collect::<Vec<_>>(), [&Module::new()]);
    let expected = [
        ["a", "b"].map(str::to_owned).into(),
        ["e", "f"].map(str::to_owned).into(),
    ];
    assert_eq!(cycles(&folders[&Module::new()]), expected);
}
