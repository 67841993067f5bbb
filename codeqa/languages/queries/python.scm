; Python. Decorators and comments above a definition are joined by the engine.

; --- definitions -----------------------------------------------------------------------
(function_definition
  name: (identifier) @name
  body: (block . (expression_statement (string) @doc)?) @body) @definition.function

(class_definition
  name: (identifier) @name
  body: (block . (expression_statement (string) @doc)?) @body) @definition.class

(assignment
  left: (identifier) @name
  right: (lambda body: (_) @body)) @definition.lambda

(pair
  key: (string (string_content) @name)
  value: (lambda body: (_) @body)) @definition.lambda

(type_alias_statement left: (type . [(identifier) @name (generic_type (identifier) @name)])) @definition.type

; X: TypeAlias = …, and the factories that make a type
(module (expression_statement
  (assignment left: (identifier) @name type: (type (identifier) @_alias)) @definition.type
  (#eq? @_alias "TypeAlias")))
(module (expression_statement
  (assignment left: (identifier) @name type: (type (attribute attribute: (identifier) @_alias))) @definition.type
  (#eq? @_alias "TypeAlias")))
(module (expression_statement
  (assignment left: (identifier) @name
    right: (call function: [(identifier) @_make (attribute attribute: (identifier) @_make)])) @definition.type
  (#any-of? @_make "TypeVar" "ParamSpec" "NewType" "NamedTuple" "namedtuple" "TypedDict")))

; names of a module or class that are bound to a value
([(module (expression_statement (assignment
    left: [(pattern_list (identifier) @name) (tuple_pattern (identifier) @name)]) @definition.constant))
  (class_definition body: (block (expression_statement (assignment
    left: [(pattern_list (identifier) @name) (tuple_pattern (identifier) @name)]) @definition.constant)))])
(module (expression_statement (assignment right:
  (assignment left: (identifier) @name right: (_)) @definition.constant)))
((module (expression_statement (assignment left: (identifier) @name right: (_)) @definition.constant)
  . (expression_statement (string) @doc)?)
  (#not-match? @name "^__"))
((class_definition body: (block
    (expression_statement (assignment left: (identifier) @name right: (_)) @definition.constant)
    . (expression_statement (string) @doc)?))
  (#not-match? @name "^__"))

; --- the module's docstring ------------------------------------------------------------
(module . (comment)* . (expression_statement (string) @doc))

; --- imports ---------------------------------------------------------------------------
(import_statement name: (dotted_name) @import.module)
(import_statement name: (aliased_import name: (dotted_name) @import.module alias: (identifier) @import.alias))
(import_from_statement module_name: (_) @import.module name: (dotted_name) @import.name)
(import_from_statement module_name: (_) @import.module
  name: (aliased_import name: (dotted_name) @import.name alias: (identifier) @import.alias))
(import_from_statement module_name: (_) @import.module (wildcard_import) @import.wildcard)

(module (expression_statement (assignment left: (identifier) @export.alias right: (identifier) @export.name)))
; --- references ------------------------------------------------------------------------
(call function: (identifier) @reference.call)
(call function: (attribute object: (_) @receiver attribute: (identifier) @reference.call))

(decorator (identifier) @reference.use)
(decorator (attribute object: (_) @receiver attribute: (identifier) @reference.use))

(class_definition superclasses: (argument_list (identifier) @reference.inherits))
(class_definition superclasses: (argument_list
  (attribute object: (_) @receiver attribute: (identifier) @reference.inherits)))
(class_definition superclasses: (argument_list (subscript value: (identifier) @reference.inherits)))
(class_definition superclasses: (argument_list (subscript
  value: (attribute object: (_) @receiver attribute: (identifier) @reference.inherits))))

(type (identifier) @reference.type)
(type (attribute object: (_) @receiver attribute: (identifier) @reference.type))
(type (generic_type (identifier) @reference.type))
(type (subscript value: (identifier) @reference.type))
(type (binary_operator (identifier) @reference.type))
(type_parameter (type (identifier) @reference.type))

(raise_statement (identifier) @reference.use)
(except_clause (identifier) @reference.use)
(except_clause (as_pattern (identifier) @reference.use))
(except_clause (tuple (identifier) @reference.use))
(except_clause (as_pattern (tuple (identifier) @reference.use)))

; mere mentions
(argument_list (identifier) @reference.value)
(argument_list (attribute object: (_) @receiver attribute: (identifier) @reference.value))
(keyword_argument value: (identifier) @reference.value)
(keyword_argument value: (attribute object: (_) @receiver attribute: (identifier) @reference.value))
(assignment right: (identifier) @reference.value)
(assignment right: (attribute object: (_) @receiver attribute: (identifier) @reference.value))
(return_statement (identifier) @reference.value)
(return_statement (attribute object: (_) @receiver attribute: (identifier) @reference.value))
(list (identifier) @reference.value)
(tuple (identifier) @reference.value)
(pair value: (identifier) @reference.value)
([(set (identifier) @reference.value) (conditional_expression (identifier) @reference.value)
  (boolean_operator (identifier) @reference.value) (comparison_operator (identifier) @reference.value)
  (binary_operator (identifier) @reference.value) (lambda body: (identifier) @reference.value)
  (yield (identifier) @reference.value) (await (identifier) @reference.value)
  (interpolation (identifier) @reference.value) (expression_list (identifier) @reference.value)
  (parenthesized_expression (identifier) @reference.value) (subscript (identifier) @reference.value)
  (list_comprehension body: (identifier) @reference.value) (pair key: (identifier) @reference.value)])
([(list (attribute object: (_) @receiver attribute: (_) @reference.value))
  (tuple (attribute object: (_) @receiver attribute: (_) @reference.value))
  (pair value: (attribute object: (_) @receiver attribute: (_) @reference.value))
  (comparison_operator (attribute object: (identifier) @receiver attribute: (_) @reference.value))])
(class_pattern (dotted_name . (identifier) @reference.use .))
(default_parameter value: (identifier) @reference.value)
(typed_default_parameter value: (identifier) @reference.value)

; --- what a variable holds -------------------------------------------------------------
(assignment left: (identifier) @variable
  right: (call function: [(identifier) (attribute)] @variable.type)
  (#match? @variable.type "^([a-z_.]+[.])?[A-Z]"))
(assignment left: (identifier) @variable type: (_) @variable.type)
(typed_parameter . (identifier) @variable type: (_) @variable.type)
(typed_default_parameter name: (identifier) @variable type: (_) @variable.type)
(assignment
  left: (attribute object: (identifier) @_self attribute: (identifier) @variable.member)
  right: (call function: [(identifier) (attribute)] @variable.type)
  (#eq? @_self "self") (#match? @variable.type "^([a-z_.]+[.])?[A-Z]"))
(assignment
  left: (attribute object: (identifier) @_self attribute: (identifier) @variable.member)
  right: (identifier) @variable.copied
  (#eq? @_self "self"))
(assignment
  left: (attribute object: (identifier) @_self attribute: (identifier) @variable.member)
  type: (_) @variable.type
  (#eq? @_self "self"))
(as_pattern (call function: [(identifier) (attribute)] @variable.type)
  alias: (as_pattern_target (identifier) @variable)
  (#match? @variable.type "^([a-z_.]+[.])?[A-Z]"))
