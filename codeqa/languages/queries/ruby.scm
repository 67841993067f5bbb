; Ruby.

; --- modules and classes

(module
  name: [(constant) @name (scope_resolution scope: (_)? @owner name: (constant) @name)]
  body: (_)? @body) @definition.module

(class
  name: [(constant) @name (scope_resolution scope: (_)? @owner name: (constant) @name)]
  body: (_)? @body) @definition.class

; Point = Struct.new(:x, :y) do … end
((assignment
  left: (constant) @name
  right: (_
    receiver: (constant) @_class
    method: (identifier) @_new
    block: (_ body: (_) @body)?)) @definition.class
  (#any-of? @_class "Struct" "Class" "Data" "Module")
  (#any-of? @_new "new" "define"))

; --- methods

(method
  name: [(identifier) @name (constant) @name (operator) @name (setter) @name]
  body: (_)? @body) @definition.function

(singleton_method
  object: (self)
  name: [(identifier) @name (constant) @name (operator) @name (setter) @name]
  body: (_)? @body) @definition.method

(singleton_method
  object: (constant) @owner
  name: [(identifier) @name (constant) @name (operator) @name (setter) @name]
  body: (_)? @body) @definition.method

; attr_accessor :name, :parent
((call
  !receiver
  method: (identifier) @_attr
  arguments: (argument_list (simple_symbol) @name)) @definition.method
  (#any-of? @_attr "attr_reader" "attr_writer" "attr_accessor" "cattr_accessor" "cattr_reader"
    "mattr_accessor" "mattr_reader" "class_attribute" "thread_mattr_accessor"))

; define_method(:name) { … }, and the macros that bind a name to a block or a lambda.
((call
  !receiver
  method: (identifier) @_define
  arguments: (argument_list . [(simple_symbol) @name (string (string_content) @name)])
  block: (_ body: (_) @body)) @definition.method
  (#any-of? @_define "define_method" "define_singleton_method" "helper_method"))
((call
  !receiver
  method: (identifier) @_define
  arguments: (argument_list . (simple_symbol) @name . (lambda body: (_) @body))) @definition.method
  (#any-of? @_define "scope" "define_method"))

((call
  !receiver
  method: (identifier) @_alias
  arguments: (argument_list . [(simple_symbol) @name (string (string_content) @name)])) @definition.method
  (#eq? @_alias "alias_method"))
(alias name: [(identifier) @name (operator) @name (setter) @name (simple_symbol) @name]) @definition.method

; task :seed do … end
((call
  !receiver
  method: (identifier) @_task
  arguments: (argument_list . [
    (simple_symbol) @name
    (pair key: [(hash_key_symbol) @name (simple_symbol) @name])
  ])
  block: (_ body: (_) @body)) @definition.function
  (#eq? @_task "task"))

; --- lambdas bound to names

(assignment
  left: [(constant) @name (identifier) @name]
  right: (lambda body: (_) @body)) @definition.lambda
((assignment
  left: [(constant) @name (identifier) @name]
  right: (_ !receiver method: (identifier) @_lambda block: (_ body: (_)? @body))) @definition.lambda
  (#any-of? @_lambda "lambda" "proc"))
((assignment
  left: [(constant) @name (identifier) @name]
  right: (_ receiver: (constant) @_proc method: (identifier) @_new block: (_ body: (_)? @body))) @definition.lambda
  (#eq? @_proc "Proc")
  (#eq? @_new "new"))

; --- inheritance

(superclass [
  (constant) @reference.inherits
  (scope_resolution scope: (_)? @receiver name: (constant) @reference.inherits)
])
((call
  !receiver
  method: (identifier) @_mixin
  arguments: (argument_list [
    (constant) @reference.inherits
    (scope_resolution scope: (_)? @receiver name: (constant) @reference.inherits)
  ]))
  (#any-of? @_mixin "include" "extend" "prepend"))
((assignment
  left: (constant)
  right: (_
    receiver: (constant) @_class
    method: (identifier) @_new
    arguments: (argument_list . [
      (constant) @reference.inherits
      (scope_resolution scope: (_)? @receiver name: (constant) @reference.inherits)
    ])))
  (#eq? @_class "Class")
  (#eq? @_new "new"))

; --- references

(call receiver: (_) @receiver method: [(identifier) @reference.call (constant) @reference.call])
(call !receiver method: [(identifier) @reference.call (constant) @reference.call])

(scope_resolution scope: (_) @receiver name: (constant) @reference.type)
(constant) @reference.type

; A bare word is a variable or a call without arguments: kept when the file defines it.
(call receiver: (identifier) @reference.value)
(body_statement (identifier) @reference.value)
(argument_list (identifier) @reference.value)

; A symbol is a method's name in `map(&:name)`, `send(:name)`, `before_action :name, if: :other?`.
(block_argument (simple_symbol) @reference.call) @receiver
(argument_list (simple_symbol) @reference.value)
((call method: (identifier) @_by arguments: (argument_list (simple_symbol) @reference.use))
  (#match? @_by "^((skip_|prepend_|append_)?(before|after|around)_.+|(|public_)send|__send__|try!?|(public_|instance_|)method|validate|rescue_from|helper_method|delegate|set_callback|alias_method|private|protected|public|module_function|memoize)$"))
((pair key: (hash_key_symbol) @_key value: (simple_symbol) @reference.use)
  (#any-of? @_key "if" "unless" "with" "to" "only_if"))
((pair key: (hash_key_symbol) @_key value: (array (simple_symbol) @reference.use))
  (#any-of? @_key "if" "unless"))
(alias alias: [(identifier) @reference.use (simple_symbol) @reference.use])

; --- imports

((call
  !receiver
  method: (identifier) @_require
  arguments: (argument_list (string (string_content) @import.module @import.wildcard))) @import
  (#any-of? @_require "require" "require_relative" "load" "autoload" "require_dependency"))

; --- constants

(assignment left: [(constant) @name (left_assignment_list (constant) @name)]) @definition.constant

; --- what a variable holds -------------------------------------------------------------
(assignment left: (identifier) @variable
  right: (_ receiver: (constant) @variable.type method: (identifier) @_new) (#eq? @_new "new"))
(assignment left: (instance_variable) @variable.member
  right: (_ receiver: (constant) @variable.type method: (identifier) @_new) (#eq? @_new "new"))
(assignment left: (instance_variable) @variable.member right: (identifier) @variable.copied)
