; The installer, made by makensis. windows_packages.py defines VERSION, FILE_VERSION, BUNDLE,
; LICENSE, ICON, INSTALLED_KIB, OUTPUT and the list of files to remove (REMOVALS).
; For one user, without asking for an administrator. Models are never removed.
Target amd64-unicode
ManifestDPIAware true
RequestExecutionLevel user
SetCompressor /SOLID lzma

!include MUI2.nsh
!include FileFunc.nsh
!include WinVer.nsh

!define NAME "MoE Launcher"
!define UNINSTALL_KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\MoELauncher"
!define PROGRAM_ID "MoELauncher.gguf"
!define CLASSES "Software\Classes"

Name "${NAME}"
OutFile "${OUTPUT}"
InstallDir "$LOCALAPPDATA\Programs\MoE Launcher"
InstallDirRegKey HKCU "${UNINSTALL_KEY}" "InstallLocation"
BrandingText "${NAME} ${VERSION}"

VIProductVersion "${FILE_VERSION}"
VIAddVersionKey "ProductName" "${NAME}"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "FileDescription" "${NAME} setup"
VIAddVersionKey "CompanyName" "MoE Launcher contributors"
VIAddVersionKey "LegalCopyright" "MIT License"

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_ABORTWARNING
!define MUI_FINISHPAGE_RUN "$INSTDIR\moelauncher.exe"
!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_LICENSE "${LICENSE}"
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

; Windows tells of changed associations only whoever listens for them.
!define SHCNE_ASSOCCHANGED 0x08000000
!macro TellShell
  System::Call 'shell32::SHChangeNotify(i ${SHCNE_ASSOCCHANGED}, i 0, p 0, p 0)'
!macroend

; A program that runs cannot be replaced or removed: its file cannot be opened for writing.
!macro RefuseWhileRunning program action
  ${If} ${FileExists} "$INSTDIR\${program}"
    ${Do}
      ClearErrors
      FileOpen $0 "$INSTDIR\${program}" a
      ${IfNot} ${Errors}
        FileClose $0
        ${ExitDo}
      ${EndIf}
      MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION \
        "${NAME} is running. Close it, then try again." /SD IDCANCEL IDRETRY +3
      SetErrorLevel 2
      Abort "${NAME} is running; nothing was ${action}."
    ${Loop}
  ${EndIf}
!macroend

Function .onInit
  ${IfNot} ${AtLeastWin10}
    MessageBox MB_OK|MB_ICONSTOP "${NAME} needs Windows 10 or newer." /SD IDOK
    SetErrorLevel 2
    Quit
  ${EndIf}
FunctionEnd

Section "${NAME}"
  SectionIn RO
  !insertmacro RefuseWhileRunning "moelauncher.exe" "installed"
  !insertmacro RefuseWhileRunning "moelauncher-cli.exe" "installed"
  ; The version that is there goes first: parts that the new one no longer has would disturb it.
  ${If} ${FileExists} "$INSTDIR\uninstall.exe"
    ExecWait '"$INSTDIR\uninstall.exe" /S /UPDATE _?=$INSTDIR'
  ${EndIf}
  SetOutPath "$INSTDIR"
  File /r "${BUNDLE}/*"
  WriteUninstaller "$INSTDIR\uninstall.exe"

  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\moelauncher.exe"

  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayIcon" "$INSTDIR\moelauncher.exe"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "Publisher" "MoE Launcher contributors"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL_KEY}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "EstimatedSize" ${INSTALLED_KIB}
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "NoRepair" 1
SectionEnd

Section "Open .gguf files with it"
  WriteRegStr HKCU "${CLASSES}\${PROGRAM_ID}" "" "GGUF language model"
  WriteRegStr HKCU "${CLASSES}\${PROGRAM_ID}\DefaultIcon" "" "$INSTDIR\moelauncher.exe,0"
  WriteRegStr HKCU "${CLASSES}\${PROGRAM_ID}\shell\open\command" "" \
    '"$INSTDIR\moelauncher.exe" "%1"'
  WriteRegStr HKCU "${CLASSES}\.gguf\OpenWithProgids" "${PROGRAM_ID}" ""
  ; Another program that has the files already keeps them; this one is in "Open with" then.
  ReadRegStr $0 HKCU "${CLASSES}\.gguf" ""
  ${If} $0 == ""
    WriteRegStr HKCU "${CLASSES}\.gguf" "" "${PROGRAM_ID}"
  ${EndIf}
  !insertmacro TellShell
SectionEnd

Section /o "Icon on the desktop"
  CreateShortcut "$DESKTOP\${NAME}.lnk" "$INSTDIR\moelauncher.exe"
SectionEnd

Section "Uninstall"
  !insertmacro RefuseWhileRunning "moelauncher.exe" "removed"
  !insertmacro RefuseWhileRunning "moelauncher-cli.exe" "removed"
  ; Only what was installed: files that somebody put beside them stay.
  !include "${REMOVALS}"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"

  Delete "$SMPROGRAMS\${NAME}.lnk"
  Delete "$DESKTOP\${NAME}.lnk"
  ReadRegStr $0 HKCU "${CLASSES}\.gguf" ""
  ${If} $0 == "${PROGRAM_ID}"
    DeleteRegValue HKCU "${CLASSES}\.gguf" ""
  ${EndIf}
  DeleteRegValue HKCU "${CLASSES}\.gguf\OpenWithProgids" "${PROGRAM_ID}"
  DeleteRegKey /ifempty HKCU "${CLASSES}\.gguf\OpenWithProgids"
  DeleteRegKey /ifempty HKCU "${CLASSES}\.gguf"
  DeleteRegKey HKCU "${CLASSES}\${PROGRAM_ID}"
  DeleteRegKey HKCU "${UNINSTALL_KEY}"
  !insertmacro TellShell

  ${GetParameters} $0
  ClearErrors
  ${GetOptions} $0 "/UPDATE" $1
  IfErrors 0 kept

  ; The cache costs only time. All else of the user stays, unless they say otherwise; models in
  ; any case.
  RMDir /r "$LOCALAPPDATA\moelauncher\Cache"
  MessageBox MB_YESNO|MB_ICONQUESTION|MB_DEFBUTTON2 \
    "Remove your chats, measurements and settings too?$\n$\nModels are kept in either case." \
    /SD IDNO IDNO kept
  FindFirst $0 $1 "$LOCALAPPDATA\moelauncher\*"
  ${DoWhile} $1 != ""
    ${If} $1 != "."
    ${AndIf} $1 != ".."
    ${AndIf} $1 != "models"
      ${If} ${FileExists} "$LOCALAPPDATA\moelauncher\$1\*"
        RMDir /r "$LOCALAPPDATA\moelauncher\$1"
      ${Else}
        Delete "$LOCALAPPDATA\moelauncher\$1"
      ${EndIf}
    ${EndIf}
    FindNext $0 $1
  ${Loop}
  FindClose $0
  kept:
  RMDir "$LOCALAPPDATA\moelauncher"
SectionEnd
